import type { RequestOf } from '@platform/sdk';
import type Provider from 'oidc-provider';
import type { BrowserSession } from '../sign-in/browser-session.ts';
import type { ClientDirectory } from '../clients/client-directory.ts';
import type { Contract, Ctx } from '../context.ts';
import type { Protocol } from '../protocol/protocol.ts';
import type { Realm, Realms } from '../realms.ts';
import type { AccountSource } from './account-source.ts';
import { partsOf } from './consent-flow.ts';

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>;
const OFFER_S = 3_600;
interface Parts {
  readonly browser: BrowserSession;
  readonly clients: ClientDirectory;
  readonly protocol: Protocol;
  readonly realms: Realms;
  readonly source: AccountSource;
}

/** Accounts on the consent page: shown all selected, and only what was shown to this person can be chosen (SGN-043). */
export class AccountSelection {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** `consent_flow` of a page is the flow's name and the authorization it belongs to. */
  async accounts({ query, headers, hostname, signal }: RequestOf<Contract, 'consentAccounts'>) {
    const { browser, clients, protocol, realms, source } = this.#parts;
    const realm = await realms.onHost(hostname);
    const { flow, uid } = partsOf(query.consent_flow);
    const session = await browser.current(realm, headers);
    if (!session?.accountId) throw this.#ctx.problem('session_required', { detail: 'Sign in first.' });
    const interaction = uid ? await protocol.provider(realm).Interaction.find(uid) : undefined;
    if (
      !interaction ||
      interaction.prompt.name !== 'consent' ||
      (interaction.session && interaction.session.accountId !== session.accountId)
    )
      throw this.#ctx.problem('interaction_not_found', { detail: 'Start again from the application you came from.' });
    const client = await clients.registered(realm.env_id, String(interaction.params['client_id']));
    const offered = client && (await source.read(client, { issuer: realms.issuer(realm), userId: session.accountId, flow }, signal));
    const ids = (offered ?? []).map(({ id }) => id);
    await this.#ctx.db.sql`
      insert into consent_offers (env_id, uid, user_id, account_ids, expires_at)
      values (${realm.env_id}, ${interaction.uid}, ${session.accountId}, ${ids}::text[], now() + make_interval(secs => ${OFFER_S}))
      on conflict (env_id, uid) do update set user_id = excluded.user_id, account_ids = excluded.account_ids,
        expires_at = excluded.expires_at`;
    return {
      accounts: (offered ?? []).map(account => ({ ...account, selected: true as const })),
      ...(offered
        ? ids.length === 0
          ? { message: 'You have no accounts that can be shared.' }
          : {}
        : { message: 'The application has not said where its accounts are; none are shared.' }),
    };
  }

  /** What the person chose, or a refusal when something was never shown. */
  async chosen(
    realm: Realm,
    interaction: Interaction,
    consentFlow: string | undefined,
    selected: readonly string[],
    userId: string,
  ): Promise<{ flow: string; accountIds: string[] } | undefined> {
    if (consentFlow === undefined) {
      if (selected.length > 0) throw this.#notOffered();
      return undefined;
    }
    const { flow, uid } = partsOf(consentFlow);
    if (uid !== interaction.uid) throw this.#notOffered();
    const [offer] = await this.#ctx.db.sql<{ account_ids: string[] }[]>`
      select account_ids from consent_offers where env_id = ${realm.env_id} and uid = ${uid} and user_id = ${userId}
        and expires_at > now()`;
    const offered = new Set(offer?.account_ids ?? []);
    if (selected.some(id => !offered.has(id))) throw this.#notOffered();
    return { flow, accountIds: [...new Set(selected)] };
  }

  #notOffered() {
    return this.#ctx.problem('account_not_offered', { detail: 'Choose from the accounts on the page.' });
  }
}
