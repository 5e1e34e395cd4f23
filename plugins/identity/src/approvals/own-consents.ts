import type { RequestOf } from '@platform/sdk';
import type { AccountVisit } from '../account/account-visit.ts';
import type { RegisteredClients } from '../clients/registered-clients.ts';
import type { Contract, Ctx } from '../context.ts';
import type { Sessions } from '../sign-in/sessions.ts';
import { titlesOf } from './asking.ts';

interface Given {
  readonly client_id: string;
  readonly scopes: string[];
  readonly granted_at: string;
}

/** What a person allowed applications, as its owner sees it and takes it back. */
export class OwnConsents {
  readonly #ctx: Ctx;
  readonly #parts: { clients: RegisteredClients; sessions: Sessions; visits: AccountVisit };

  constructor(ctx: Ctx, parts: { clients: RegisteredClients; sessions: Sessions; visits: AccountVisit }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async list(request: RequestOf<Contract, 'ownConsents'>) {
    const { clients, visits } = this.#parts;
    const { realm, person } = await visits.reading(request);
    const rows = await this.#ctx.db.sql<Given[]>`
      select client_id, scopes, granted_at from consents where env_id = ${realm.env_id} and user_id = ${person.user_id}
        order by granted_at desc, client_id limit 200`;
    const items = await Promise.all(
      rows.map(async ({ client_id, scopes, granted_at }) => {
        const { metadata } = (await clients.find(realm.env_id, client_id)) ?? {};
        return {
          client_id,
          client: { name: metadata?.client_name ?? client_id, logo_url: metadata?.logo_uri ?? null },
          scopes: titlesOf(this.#ctx, scopes.join(' ')),
          granted_at,
        };
      }),
    );
    return { items };
  }

  /** The next authorization asks again, and nothing that was issued under the consent can be renewed, redeemed or used. */
  async withdraw(request: RequestOf<Contract, 'withdrawConsent'>): Promise<void> {
    const { sessions, visits } = this.#parts;
    const { realm, person } = await visits.changing(request);
    const { client_id } = request.params;
    const grants = await this.#ctx.db.tx(async tx => {
      const given = await tx.sql<
        object[]
      >`delete from consents where env_id = ${realm.env_id} and user_id = ${person.user_id} and client_id = ${client_id} returning 1`;
      // What somebody else allowed is as unknown as nothing at all (G-K-02).
      if (given.length === 0) throw this.#ctx.problem('consent_not_found', { detail: 'Reload the page: it was taken back already.' });
      const gone = await tx.sql<{ name: string }[]>`
        with gone as (
          delete from oidc_state where env_id = ${realm.env_id} and account_id = ${person.user_id} and payload ->> 'clientId' = ${client_id}
            and model in ('RefreshToken', 'AuthorizationCode', 'DeviceCode', 'BackchannelAuthenticationRequest', 'Grant')
              returning model, id_hash, grant_id),
        unselected as (delete from grant_selections where grant_id in (select grant_id from gone))
        select encode(id_hash, 'hex') as name from gone where model = 'Grant' union
          select encode(sha256(convert_to(grant_id, 'UTF8')), 'hex') from gone where grant_id is not null`;
      const names = gone.map(({ name }) => name);
      await sessions.revokeGrants(tx, names);
      await tx.audit({
        action: 'auth.consent.withdrawn',
        envId: realm.env_id,
        resource: { type: 'oauth_client', id: client_id },
        details: { user_id: person.user_id },
      });
      return names;
    });
    await sessions.markGrants(grants);
  }
}
