import type { Cache, PagePart, Sql } from '@platform/sdk';
import type { Ctx } from '../context.ts';

export const CIBA = 'urn:openid:params:grant-type:ciba';
export const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';

/** Metadata of a registered client (RFC 7591), completed and checked; what the platform adds to the standard stands last. */
export interface ClientMetadata {
  readonly client_name: string;
  readonly redirect_uris: readonly string[];
  readonly grant_types: readonly string[];
  readonly response_types: readonly string[];
  readonly token_endpoint_auth_method: string;
  readonly application_type: 'web' | 'native';
  readonly id_token_signed_response_alg: 'EdDSA' | 'ES256' | 'ML-DSA-65' | 'RS256';
  readonly scope: string;
  readonly logo_uri?: string;
  readonly [member: string]: unknown;
  /** Of the tenant's own: nobody is asked for consent, and its tokens carry all the person may do. */
  readonly first_party: boolean;
  readonly app_instance_id?: string;
  /** Where the accounts are read that a person can share with this client. */
  readonly consent_accounts_uri?: string;
}
export interface RegisteredClient {
  readonly env_id: string;
  readonly client_id: string;
  readonly metadata: ClientMetadata;
  /** SHA-256 of the secret, hex; absent for public clients and those that sign or show a certificate. */
  readonly secret_hash: string | null;
  readonly registration_hash: string;
  readonly issued_at: number;
  readonly registered_by: string;
  readonly updated_at: string;
}

const columns = (sql: Sql): unknown => sql`
  env_id, client_id, metadata, encode(secret_hash, 'hex') as secret_hash, encode(registration_hash, 'hex') as registration_hash,
  extract(epoch from created_at)::int as issued_at, registered_by, updated_at`;
const LIMIT = 5_000;
const BACKSTOP_MS = 60_000;
const versionKey = (envId: string) => `auth:clients:{${envId}}`;

/**
 * Clients that were registered, by realm. Cached for exactly as long as the realm's version stands still, as the access model is (day-one
 * 6).
 */
export class RegisteredClients {
  readonly #ctx: Ctx;
  readonly #known: Cache<RegisteredClient | undefined>;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#known = ctx.cache({ max: LIMIT, ttl: BACKSTOP_MS });
  }

  async find(envId: string, clientId: string): Promise<RegisteredClient | undefined> {
    // Ids are made here, so nothing else is looked up.
    if (!/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(clientId)) return undefined;
    const version = await this.#version(envId);
    const read = () => this.read(envId, clientId);
    return version === undefined ? read() : this.#known.get(`${envId} ${clientId}`, read, version);
  }

  /** Past every cache. */
  async read(envId: string, clientId: string): Promise<RegisteredClient | undefined> {
    const { sql } = this.#ctx.db;
    const [row] = await sql<
      RegisteredClient[]
    >`select ${columns(sql)} from oauth_clients where env_id = ${envId} and client_id = ${clientId}`;
    return row;
  }

  /** Of one realm, newest first: ids are in the order of time. */
  async page(envId: string, { where, order, limit }: PagePart): Promise<readonly RegisteredClient[]> {
    const { sql } = this.#ctx.db;
    return sql<RegisteredClient[]>`
      select ${columns(sql)} from oauth_clients
      where env_id = ${envId} and ${where} order by ${order} limit ${limit}`;
  }

  /**
   * After a commit: the next request of every process reads anew. Without the store nothing is cached; what was is at most a minute old.
   */
  async changed(envId: string): Promise<void> {
    try {
      await this.#ctx.kv.call('INCR', versionKey(envId));
    } catch (error) {
      this.#ctx.log.error({ err: error, env_id: envId }, 'other processes could not be told of a changed client');
    }
  }

  /** Read no earlier than now; `undefined` when the store is away, and then nothing is cached. */
  async #version(envId: string): Promise<string | undefined> {
    const [version] = await this.#ctx.kv.current([versionKey(envId)]).catch(() => [undefined]);
    return version === null ? '' : version;
  }
}
