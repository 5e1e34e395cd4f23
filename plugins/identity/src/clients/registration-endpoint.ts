import type { IncomingMessage } from 'node:http';
import type { NodeExchange, TokenClaims } from '@platform/sdk';
import type { Attempts } from '../sign-in/attempts.ts';
import type { ClientDirectory } from './client-directory.ts';
import type { Ctx, IdentityTx } from '../context.ts';
import type { Realm, Realms } from '../realms.ts';
import { scopeList } from '../access/scope-name.ts';
import type { TokenVerifier } from '../protocol/tokens/token-verifier.ts';
import type { Workloads } from '../access/workloads.ts';
import type { VerticalHomes } from './vertical-homes.ts';
import { MetadataRefused } from './client-metadata.ts';
import { type ClientRegistration, type Registrar, hashOf, matches, registrationOf } from './client-registration.ts';
import type { RegisteredClient, RegisteredClients } from './registered-clients.ts';
import { answerJson } from '../protocol/json-answer.ts';

const SCOPE = 'auth:clients:write';
const FORBIDDEN = ['registration_access_token', 'registration_client_uri', 'client_secret_expires_at', 'client_id_issued_at'];

type Members = Readonly<Record<string, unknown>>;
interface Parts {
  readonly attempts: Attempts;
  readonly clients: RegisteredClients;
  readonly directory: ClientDirectory;
  readonly homes: VerticalHomes;
  readonly registration: ClientRegistration;
  readonly realms: Realms;
  readonly tokens: TokenVerifier;
  readonly workloads: Workloads;
}
class Refused extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, description: string) {
    super(description);
    this.status = status;
    this.code = code;
  }
}

type Exchanged = Pick<NodeExchange, 'req' | 'res' | 'body'>;

/**
 * `/oauth/register`: RFC 7591 for the holder of an initial access token (a workload's own certificate-bound token with
 * `auth:clients:write`, good once), RFC 7592 for the client itself. Over mutual TLS without a token a workload is told the client that it
 * is.
 */
export class RegistrationEndpoint {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** `id` is the rest of the path after `/oauth/register`; `workload` is the peer's, where the certificate counts. */
  async handle(realm: Realm, id: string, exchange: Exchanged & Pick<NodeExchange, 'peer'>, workload: string | undefined): Promise<void> {
    const { res, peer } = exchange;
    try {
      if (id === '') await this.#register(realm, exchange, peer?.thumbprint, workload);
      else await this.#manage(realm, decodeURIComponent(id.slice(1)), exchange);
    } catch (error) {
      if (error instanceof MetadataRefused) return answerJson(res, 400, { error: error.code, error_description: error.message });
      if (error instanceof URIError) return answerJson(res, 401, { error: 'invalid_token' });
      if (!(error instanceof Refused)) throw error;
      const challenge: Record<string, string> =
        error.status === 401 ? { 'www-authenticate': `Bearer realm="platform", error="${error.code}"` } : {};
      answerJson(res, error.status, { error: error.code, error_description: error.message }, challenge);
    }
  }

  async #register(realm: Realm, exchange: Exchanged, thumbprint: string | undefined, workload: string | undefined): Promise<void> {
    const { req, res } = exchange;
    if (req.method !== 'POST')
      return answerJson(res, 405, { error: 'invalid_request', error_description: 'POST the metadata' }, { allow: 'POST' });
    const token = bearerOf(req);
    if (token === undefined && workload !== undefined) return this.#whoAmI(realm, workload, exchange);
    const { claims: by, registrar } = await this.#initialAccess(token, thumbprint, realm);
    await this.#parts.attempts.register(by.sub);
    const asked = jsonOf(exchange);
    const issued = await this.#parts.registration.create(realm.env_id, asked, registrar, tx => this.#spend(tx, realm, by));
    answerJson(res, 201, registrationOf(issued, this.#uriOf(realm, issued.client)));
  }

  /** A workload is a client by its certificate already: nothing is stored, and every repeat is told the same (doc2, gateway 6). */
  async #whoAmI(realm: Realm, workload: string, exchange: Exchanged): Promise<void> {
    jsonOf(exchange);
    const client = await this.#parts.directory.find(workload, realm.env_id);
    if (!client) throw new Refused(401, 'invalid_token', `${workload} is no client of this realm`);
    answerJson(exchange.res, 201, client);
  }

  async #initialAccess(
    token: string | undefined,
    thumbprint: string | undefined,
    realm: Realm,
  ): Promise<{ claims: TokenClaims; registrar: Registrar }> {
    const refused = (description: string) => new Refused(401, 'invalid_token', description);
    if (!token) throw refused('an initial access token is required');
    const claims = await this.#parts.tokens.read(token);
    if (claims?.token_type !== 'm2m') throw refused('the initial access token is not the token of a workload');
    // Bound means bound: a caller that shows it must hold the certificate (RFC 8705).
    if (!thumbprint || claims.cnf?.['x5t#S256'] !== thumbprint) throw refused('the initial access token is bound to another certificate');
    const live = await this.#parts.workloads.find(claims.sub);
    if (!scopeList(claims.scope).includes(SCOPE) || !live?.scopes.includes(SCOPE))
      throw new Refused(403, 'insufficient_scope', `the initial access token lacks ${SCOPE}`);
    await this.#parts.homes.require(claims.sub, live.vertical, realm.env_id);
    return { claims, registrar: { id: claims.sub, trusted: live.vertical === 'platform' } };
  }

  /** Of all who register with one token at once, one does (H-13). */
  async #spend(tx: IdentityTx, realm: Realm, { jti, exp }: TokenClaims): Promise<void> {
    const row = {
      env_id: realm.env_id,
      model: 'InitialAccessToken',
      id_hash: hashOf(jti),
      payload: tx.sql.json({}),
      expires_at: new Date(exp * 1_000).toISOString(),
    };
    const spent = await tx.sql<object[]>`insert into oidc_state ${tx.sql.row(row)} on conflict do nothing returning 1`;
    if (spent.length === 0) throw new Refused(401, 'invalid_token', 'the initial access token was used before; ask for another');
  }

  async #manage(realm: Realm, clientId: string, exchange: Exchanged): Promise<void> {
    const { req, res } = exchange;
    if (!['GET', 'PUT', 'DELETE'].includes(req.method ?? ''))
      return answerJson(res, 405, { error: 'invalid_request' }, { allow: 'GET, PUT, DELETE' });
    const token = bearerOf(req);
    const client = await this.#parts.clients.read(realm.env_id, clientId);
    // A client that is gone and a token that is wrong look alike (RFC 7592 2).
    if (!token || !client || !matches(client.registration_hash, token))
      throw new Refused(401, 'invalid_token', 'the registration access token does not belong to such a client');
    if (req.method === 'DELETE') {
      await this.#parts.registration.remove(realm.env_id, clientId, clientId);
      return void res.writeHead(204, { 'cache-control': 'no-store' }).end();
    }
    const shown = (found: RegisteredClient, secret?: string) =>
      answerJson(res, 200, registrationOf({ client: found, secret, registrationToken: token }, this.#uriOf(realm, found)));
    if (req.method === 'GET') return shown(client);
    const asked = jsonOf(exchange);
    const invalid = (description: string) => new MetadataRefused('invalid_client_metadata', description);
    for (const member of FORBIDDEN) if (asked[member] !== undefined) throw invalid(`${member} is not the client's to send`);
    if (asked['client_id'] !== clientId) throw invalid('client_id is the one registered');
    const secret = asked['client_secret'];
    if (secret !== undefined && (typeof secret !== 'string' || !matches(client.secret_hash, secret)))
      throw invalid('client_secret is not the one issued');
    const updated = await this.#parts.registration.update(client, asked);
    shown(updated.client, updated.secret);
  }

  #uriOf(realm: Realm, { client_id: clientId }: RegisteredClient): string {
    return `${this.#parts.realms.issuer(realm)}/oauth/register/${clientId}`;
  }
}

const bearerOf = (req: IncomingMessage) => /^Bearer ([A-Za-z0-9._~+/=-]{1,12288})$/i.exec(req.headers.authorization ?? '')?.[1];

function jsonOf({ req, body }: Exchanged): Members {
  if (!/^application\/json\b/i.test(req.headers['content-type'] ?? ''))
    throw new Refused(415, 'invalid_request', 'send the metadata as application/json');
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'), (name, member: unknown) => {
      if (name.includes('\0') || (typeof member === 'string' && member.includes('\0')))
        throw new Refused(400, 'invalid_client_metadata', 'the metadata holds U+0000');
      return member;
    });
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused(400, 'invalid_client_metadata', 'the metadata is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Refused(400, 'invalid_client_metadata', 'the metadata is not a JSON object');
  return value as Members;
}
