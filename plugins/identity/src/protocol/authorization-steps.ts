import type { RequestOf } from '@platform/sdk';
import type Provider from 'oidc-provider';
import type { AccountSelection } from '../approvals/account-selection.ts';
import type { Consents } from '../approvals/consents.ts';
import type { BrowserSession } from '../sign-in/browser-session.ts';
import type { Contract, Ctx } from '../context.ts';
import type { PageGuard } from '../sign-in/page-guard.ts';
import type { Protocol } from './protocol.ts';
import { ProtocolTurn, type Read, stateName } from './protocol-turn.ts';
import type { Realm, Realms } from '../realms.ts';

export type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>;

interface Parts {
  readonly browser: BrowserSession;
  readonly consents: Consents;
  readonly guard: PageGuard;
  readonly protocol: Protocol;
  readonly realms: Realms;
  readonly selection: AccountSelection;
}

/** Where an authorization stands that the protocol interrupted for a page, and how it goes on. Always on this origin (no open redirect). */
export class AuthorizationSteps {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** The authorization that a page belongs to, while it stands; `read` where it was read along with something else. */
  async begun(realm: Realm, { uid }: { uid?: string | undefined }, read?: Read | null): Promise<Interaction | null> {
    if (!uid || read === null) return null;
    const { Interaction } = this.#parts.protocol.provider(realm);
    if (!read) return (await Interaction.find(uid)) ?? null;
    const turn = new ProtocolTurn(this.#ctx.db.sql, realm.env_id);
    turn.bring(stateName('Interaction', uid), read);
    return (await turn.run(() => Interaction.find(uid))) ?? null;
  }

  /** The path on which the browser resumes. The protocol takes it up only from the browser that began it, for its own cookie. */
  async nextAfterSignIn(
    interaction: Interaction | null,
    { return_to, ui_locales }: { return_to?: string | undefined; ui_locales?: string | undefined },
  ): Promise<string> {
    if (!interaction) return inLanguage(return_to ?? '/', ui_locales);
    const asked = ui_locales !== undefined && ui_locales !== interaction.params['ui_locales'];
    // A language chosen on the way is the one of the pages that follow.
    if (asked) interaction.params['ui_locales'] = ui_locales;
    // The session it began under is replaced by the new one.
    const replaced = interaction.session !== undefined;
    if (replaced) interaction.session = undefined;
    if (asked || replaced) await interaction.persist();
    return pathOf(interaction.returnTo);
  }

  /** Consent: what the person decides is written down, and the protocol continues. */
  async decide({ body, headers, hostname }: RequestOf<Contract, 'continueAuthorization'>) {
    const { browser, consents, guard, protocol, realms, selection } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    const provider = protocol.provider(realm);
    const interaction = await this.begun(realm, body);
    if (!interaction) throw this.#ctx.problem('interaction_not_found', { detail: 'Start again from the application you came from.' });
    if (body.decision === 'deny') {
      interaction.result = { error: 'access_denied', error_description: 'the person declined' };
    } else {
      const session = await browser.current(realm, headers);
      if (!session?.accountId || (interaction.session && interaction.session.accountId !== session.accountId))
        throw this.#ctx.problem('session_required', { detail: 'Sign in, then decide.' });
      if (interaction.prompt.name === 'consent') {
        const chosen = await selection.chosen(realm, interaction, body.consent_flow, body.selected_account_ids ?? [], session.accountId);
        const { grant, grantId } = await this.#grant(provider, interaction, session.accountId);
        await consents.remember(realm.env_id, grantId, grant, chosen);
        interaction.result = { consent: { grantId } };
      }
    }
    await interaction.persist();
    return { redirect_to: pathOf(interaction.returnTo) };
  }

  /** Everything the prompt says is missing; tokens carry of it what the person holds when they are issued. */
  async #grant(provider: Provider, interaction: Interaction, accountId: string) {
    const known = interaction.grantId ? await provider.Grant.find(interaction.grantId) : undefined;
    const grant = known ?? new provider.Grant({ accountId, clientId: String(interaction.params['client_id']) });
    const { missingOIDCScope, missingResourceScopes } = interaction.prompt.details as {
      missingOIDCScope?: string[];
      missingResourceScopes?: Record<string, string[]>;
    };
    if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
    for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) grant.addResourceScope(resource, scopes.join(' '));
    return { grant, grantId: await grant.save() };
  }
}

function inLanguage(path: string, uiLocales: string | undefined): string {
  return uiLocales === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams({ ui_locales: uiLocales })}`;
}

function pathOf(url: string): string {
  const { pathname, search } = new URL(url);
  return `${pathname}${search}`;
}
