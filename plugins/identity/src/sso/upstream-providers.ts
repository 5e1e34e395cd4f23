import type { Cache, RequestOf, Sealed, SealedBox } from '@platform/sdk';
import type { Contract, Ctx } from '../context.ts';
import type { Realm, Realms } from '../realms.ts';
import type { UpstreamProtocol } from './upstream-protocol.ts';

export interface UpstreamProvider {
  readonly issuer: string;
  readonly client_id: string;
  readonly label: string;
  readonly allow_sign_up: boolean;
  readonly updated_at: string;
}
type Asked = Pick<RequestOf<Contract, 'getUpstream'>, 'env'>;

const KNOWN_MS = 5_000;
const KNOWN = 1_000;
export const purposeOf = (envId: string) => `upstream:${envId}`;
export const redirectUriOf = (realms: Realms, realm: Realm): string => `${realms.issuer(realm)}/sso`;

/** The OpenID provider of a realm's own organization, as an administrator set it up. */
export class UpstreamProviders {
  readonly #ctx: Ctx;
  readonly #parts: { box: SealedBox; protocol: UpstreamProtocol; realms: Realms };
  readonly #labels: Cache<string | undefined>;

  constructor(ctx: Ctx, parts: { box: SealedBox; protocol: UpstreamProtocol; realms: Realms }) {
    this.#ctx = ctx;
    this.#labels = ctx.cache({ max: KNOWN, ttl: KNOWN_MS, stale: { ms: Number.POSITIVE_INFINITY } });
    this.#parts = parts;
  }

  async get(request: Asked) {
    const realm = await this.#realm(request);
    return this.#told(realm, await this.require(realm));
  }

  /** Nothing is kept that does not answer: its discovery is read first. */
  async put(request: RequestOf<Contract, 'putUpstream'>) {
    const { box, protocol } = this.#parts;
    const realm = await this.#realm(request);
    const { client_secret: secret, allow_sign_up = false, ...said } = request.body;
    await protocol.discover(said.issuer);
    await this.#ctx.db.tx(async tx => {
      const row = {
        ...said,
        env_id: realm.env_id,
        allow_sign_up,
        client_secret: tx.sql.json(box.seal(purposeOf(realm.env_id), secret)),
        updated_at: this.#ctx.clock.now().toISOString(),
      };
      await tx.sql`
        insert into upstream_providers ${tx.sql.row(row)} on conflict (env_id) do update
          set issuer = excluded.issuer, client_id = excluded.client_id,
          client_secret = excluded.client_secret, label = excluded.label, allow_sign_up = excluded.allow_sign_up,
            updated_at = excluded.updated_at`;
      await tx.audit({
        action: 'auth.sso.configured',
        envId: realm.env_id,
        resource: { type: 'realm', id: realm.env_id },
        details: { issuer: said.issuer, client_id: said.client_id, allow_sign_up },
      });
    });
    this.#labels.forget(realm.env_id);
    return this.#told(realm, await this.require(realm));
  }

  async delete(request: Asked): Promise<void> {
    const realm = await this.#realm(request);
    await this.#ctx.db.tx(async tx => {
      const gone = await tx.sql<object[]>`delete from upstream_providers where env_id = ${realm.env_id} returning 1`;
      if (gone.length === 0) throw this.#off();
      await tx.audit({ action: 'auth.sso.removed', envId: realm.env_id, resource: { type: 'realm', id: realm.env_id } });
    });
    this.#labels.forget(realm.env_id);
  }

  async require({ env_id }: Realm): Promise<UpstreamProvider> {
    const [row] = await this.#ctx.db.sql<
      UpstreamProvider[]
    >`select issuer, client_id, label, allow_sign_up, updated_at from upstream_providers where env_id = ${env_id}`;
    if (!row) throw this.#off();
    return row;
  }

  async secretOf({ env_id }: Realm): Promise<string> {
    const [row] = await this.#ctx.db.sql<
      { client_secret: Sealed }[]
    >`select client_secret from upstream_providers where env_id = ${env_id}`;
    const secret = row && this.#parts.box.open(purposeOf(env_id), row.client_secret);
    if (secret === undefined) throw this.#off();
    return secret;
  }

  /** What the button on the sign-in page says; nothing where there is no provider. Never fails the page: what was last known is said. */
  async labelOf({ env_id }: Realm): Promise<string | undefined> {
    try {
      return await this.#labels.get(
        env_id,
        async () => (await this.#ctx.db.sql<{ label: string }[]>`select label from upstream_providers where env_id = ${env_id}`)[0]?.label,
      );
    } catch (error) {
      this.#ctx.log.debug({ err: error }, 'whether there is a provider is not to be had');
      return undefined;
    }
  }

  #realm({ env }: Asked): Promise<Realm> {
    return this.#parts.realms.ofEnv(env);
  }

  #told(realm: Realm, provider: UpstreamProvider) {
    return { ...provider, redirect_uri: redirectUriOf(this.#parts.realms, realm) };
  }

  #off() {
    return this.#ctx.problem('sso_off', { detail: 'No provider is set up here. Sign in with your password.' });
  }
}
