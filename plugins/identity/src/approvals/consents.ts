import type { RequestOf } from '@platform/sdk';
import type Provider from 'oidc-provider';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { type ClientDirectory, CONSOLE_CLIENT } from '../clients/client-directory.ts';
import type { RegisteredClient } from '../clients/registered-clients.ts';
import type { Contract, Ctx } from '../context.ts';
import type { Realm, Realms } from '../realms.ts';
import { titlesOf } from './asking.ts';

/** The one resource of this authorization server: the platform's services. */
export const API = 'urn:platform:api';
const SELECTION_S = 30 * 86_400 + 3_600;
export type Grant = InstanceType<Provider['Grant']>;

interface Remembered {
  readonly scopes: readonly string[];
  readonly consent_flow: string | null;
  readonly account_ids: readonly string[] | null;
}

/** What people allowed applications: remembered by person and client, with the accounts they chose, which go into the tokens by grant. */
export class Consents {
  readonly #ctx: Ctx;
  readonly #clients: ClientDirectory;
  readonly #realms: Realms;

  constructor(ctx: Ctx, { clients, realms }: { clients: ClientDirectory; realms: Realms }) {
    this.#ctx = ctx;
    this.#clients = clients;
    this.#realms = realms;
  }

  async describe({ query, hostname }: RequestOf<Contract, 'consent'>) {
    const realm = await this.#realms.onHost(hostname);
    const client = await this.#clients.find(query.client_id, realm.env_id);
    if (!client) throw this.#ctx.problem('client_not_found', { detail: 'Start again from the application you came from.' });
    return {
      client: { name: String(client.client_name ?? query.client_id), logo_url: client.logo_uri ?? null },
      scopes: titlesOf(this.#ctx, query.scope ?? ''),
    };
  }

  /** Whether nobody is asked: the console, and what a tenant registered as its own. */
  async isFirstParty(envId: string, clientId: string): Promise<boolean> {
    return clientId === CONSOLE_CLIENT || ((await this.#clients.registered(envId, clientId))?.metadata.first_party ?? false);
  }

  /** The grant under which an authorization goes on without a page; none when the person must be asked. */
  async existing(context: KoaContextWithOIDC, realm: Realm): Promise<Grant | undefined> {
    const { client, session, provider, requestParamScopes, result } = context.oidc;
    const consented = result?.consent?.grantId;
    if (consented) return provider.Grant.find(consented);
    if (!client || !session?.accountId) return undefined;
    const { accountId } = session;
    // A grant of its own for every authorization, so that one revoked family leaves the others alone.
    const grant = new provider.Grant({ clientId: client.clientId, accountId });
    if (await this.isFirstParty(realm.env_id, client.clientId)) {
      addScopes(grant, [...requestParamScopes]);
      await grant.save();
      return grant;
    }
    const known = await this.#remembered(realm.env_id, accountId, client.clientId);
    const flow = flowOf(context, await this.#clients.registered(realm.env_id, client.clientId)) ?? null;
    // Accounts are chosen for one flow; another one asks.
    if (!known || known.consent_flow !== flow) return undefined;
    addScopes(grant, known.scopes);
    const grantId = await grant.save();
    if (known.account_ids) await this.#select(grantId, known.account_ids);
    return grant;
  }

  /** Remembers what the person has just allowed. */
  async remember(envId: string, grantId: string, grant: Grant, chosen?: { flow: string; accountIds: readonly string[] }): Promise<void> {
    const { accountId = '', clientId = '' } = grant;
    if (chosen) await this.#select(grantId, chosen.accountIds);
    if (!(await this.#clients.registered(envId, clientId))) return;
    const scopes = [...new Set(`${grant.getOIDCScope()} ${grant.getResourceScope(API)}`.split(' ').filter(Boolean))];
    await this.#ctx.db.tx(async tx => {
      await tx.sql`
        insert into consents (env_id, user_id, client_id, scopes, consent_flow, account_ids)
        values (${envId}, ${accountId}, ${clientId}, ${scopes}::text[], ${chosen?.flow ?? null},
          ${chosen ? [...chosen.accountIds] : null}::text[])
        on conflict (env_id, user_id, client_id) do update set scopes = excluded.scopes, consent_flow = excluded.consent_flow,
          account_ids = excluded.account_ids, granted_at = now()`;
      await tx.audit({
        action: 'auth.consent.given',
        envId,
        resource: { type: 'oauth_client', id: clientId },
        details: { user_id: accountId, scopes, accounts: chosen?.accountIds.length ?? 0 },
      });
    });
  }

  /** The accounts of a grant, for its tokens. */
  async selectionOf(grantId: string | undefined): Promise<readonly string[] | undefined> {
    if (grantId === undefined) return undefined;
    const [row] = await this.#ctx.db.sql<
      { account_ids: string[] }[]
    >`select account_ids from grant_selections where grant_id = ${grantId} and expires_at > now()`;
    return row?.account_ids;
  }

  async #remembered(envId: string, userId: string, clientId: string): Promise<Remembered | undefined> {
    const [row] = await this.#ctx.db.sql<
      Remembered[]
    >`select scopes, consent_flow, account_ids from consents where env_id = ${envId} and user_id = ${userId} and client_id = ${clientId}`;
    return row;
  }

  async #select(grantId: string, accountIds: readonly string[]): Promise<void> {
    await this.#ctx.db.sql`
      insert into grant_selections (grant_id, account_ids, expires_at)
        values (${grantId}, ${[...accountIds]}::text[], now() + make_interval(secs => ${SELECTION_S}))
      on conflict (grant_id) do update set account_ids = excluded.account_ids, expires_at = excluded.expires_at`;
  }
}

/** Openid's scopes and actions of services, each to where a grant keeps them. */
export function addScopes(grant: Grant, scopes: readonly string[]): void {
  const openid = scopes.filter(scope => !scope.includes(':'));
  const actions = scopes.filter(scope => scope.includes(':'));
  if (openid.length > 0) grant.addOIDCScope(openid.join(' '));
  if (actions.length > 0) grant.addResourceScope(API, actions.join(' '));
}

/** The flow in which accounts are chosen: as the request says, or because the client has accounts to choose from. */
export function flowOf(context: KoaContextWithOIDC, client: RegisteredClient | undefined): string | undefined {
  const asked = context.oidc.params?.['consent_flow'];
  if (typeof asked === 'string' && client) return asked;
  return client?.metadata.consent_accounts_uri === undefined ? undefined : 'accounts';
}
