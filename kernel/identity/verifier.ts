import { hash, verify } from 'node:crypto';
import { type Caller, type Principal, SYSTEM } from '@platform/sdk';
import { kernelProblem } from '../base/kernel-problem.ts';
import type { AccessClosures } from './access-closure.ts';
import type { Claims } from './claims.ts';
import type { KeySet } from './key-set.ts';
import { canonicalScope, parseScopes } from './scope-name.ts';
import type { Peer } from './tls.ts';

const LEEWAY_S = 30;
const CACHE_LIMIT = 10_000;
const RECENT = 32;
const MAX_TOKEN_LENGTH = 12_288;
const DIGESTS: Readonly<Record<string, string | null>> = { EdDSA: null, ES256: 'sha256', 'ML-DSA-65': null };

const PERSON = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** A workload known without asking anybody: platform services, from their manifests. */
export type WorkloadGrants = (name: string) => { vertical: string; scopes: ReadonlySet<string> } | undefined;

/** A verified caller with what it may do at this moment. */
export interface Identity {
  readonly caller: Caller;
  readonly principal: Principal;
  readonly scopes: ReadonlySet<string>;
}

export interface VerifyRequest {
  readonly authorization: string | undefined;
  readonly peer: Peer | undefined;
  /** Service that answers; user and delegated tokens must be meant for it. */
  readonly service: string;
  /** Tenant the ingress injected, where the peer is the ingress. */
  readonly tenantEnvId: string | undefined;
}

export interface VerifierOptions {
  readonly keys: KeySet;
  readonly closures: AccessClosures;
  readonly workloads: WorkloadGrants;
  readonly issuers: (issuer: string) => boolean;
  readonly now?: () => number;
}

/** Verifies callers in the order of G-K-06. Every refusal is a problem that says what is wrong with the credential, never with the token's text. */
export class Verifier {
  readonly #options: VerifierOptions;
  readonly #now: () => number;
  /** Signature checks once per token; time, binding, revocation and scopes are checked on every request. */
  readonly #verified = new Map<string, Claims>();
  /** The few that were sent last, by the header itself: who sends a thousand requests a second sends one token. */
  readonly #recent = new Map<string, Claims>();
  readonly #narrowed = new WeakMap<Claims, { readonly effective: ReadonlySet<string>; readonly scopes: ReadonlySet<string> }>();

  constructor(options: VerifierOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  async verify(request: VerifyRequest): Promise<Identity> {
    // Bearer first: certificate-first would lose the acting user of a delegated token (KRN-002, KRN-003).
    if (request.authorization === undefined) {
      if (!request.peer) throw kernelProblem('unauthenticated', { detail: 'Send a bearer token, or connect with a workload certificate.' });
      return this.workload(request.peer.workload, request.peer.thumbprint);
    }
    const claims = this.#recent.get(request.authorization) ?? (await this.#claimsIn(request.authorization));
    this.#checkTime(claims);
    const { peer } = request;
    const bound = claims.cnf?.['x5t#S256'];
    if (bound !== undefined && bound !== peer?.thumbprint) throw kernelProblem('unauthenticated', { detail: 'The token is bound to another client certificate.' });
    switch (claims.token_type) {
      case 'm2m':
        return this.#machineToken(claims, bound);
      case 'access':
      case 'delegated':
        return this.#personToken(claims, request, bound);
      default:
        throw kernelProblem('unauthenticated', { detail: 'The token is of a kind no service accepts.' });
    }
  }

  /** A workload by its own certificate, or in process by the kernel's word. */
  async workload(name: string, thumbprint: string | undefined, jti?: string): Promise<Identity> {
    const { closures, workloads } = this.#options;
    const known = workloads(name);
    const revocations = [`revoked:sub:${name}`, ...(thumbprint ? [`revoked:cert:${thumbprint}`] : []), ...(jti ? [`revoked:jti:${jti}`] : [])];
    const live = await closures.live([SYSTEM.envId], revocations);
    if (live.revoked) throw kernelProblem('actor_revoked', { detail: 'The workload certificate was revoked.' });
    const { scopes, vertical } = known ?? (await closures.workload(name, live.versions));
    return { principal: 'machine', scopes, caller: machineCaller(name, thumbprint, vertical, thumbprint !== undefined) };
  }

  async #machineToken(claims: Claims, bound: string | undefined): Promise<Identity> {
    const { scopes } = await this.workload(claims.sub, bound, claims.jti);
    return {
      principal: 'machine',
      scopes: this.#narrow(scopes, claims),
      caller: { ...machineCaller(claims.sub, bound, claims.vertical, bound !== undefined), clientId: claims.client_id },
    };
  }

  async #personToken(claims: Claims, request: VerifyRequest, bound: string | undefined): Promise<Identity> {
    const audience = Array.isArray(claims.aud) ? claims.aud : [claims.aud];
    if (!audience.includes(request.service)) throw kernelProblem('unauthenticated', { detail: `The token is not meant for ${request.service}.` });
    const delegated = claims.token_type === 'delegated';
    if (claims.env_id === undefined) throw kernelProblem('tenant_unresolved');
    if (!delegated && request.tenantEnvId !== undefined && request.tenantEnvId !== claims.env_id) throw kernelProblem('tenant_mismatch');
    const userId = claims.act?.sub ?? claims.sub;
    // Who acts for a customer with the customer's leave (CIBA) has the customer's rights; who acts through a workload has his own (G-K-07).
    const assisted = delegated && PERSON.test(claims.sub);
    const holder = assisted ? claims.sub : userId;
    const revocations = [
      ...new Set([`revoked:sub:${userId}`, `revoked:sub:${holder}`]),
      `revoked:jti:${claims.jti}`,
      ...(claims.sid ? [`revoked:sid:${claims.sid}`] : []),
      ...(claims.gid ? [`revoked:gid:${claims.gid}`] : []),
      ...(bound ? [`revoked:cert:${bound}`] : []),
    ];
    const live = await this.#options.closures.live([...new Set([claims.env_id, SYSTEM.envId])], revocations, holder);
    if (live.revoked) throw kernelProblem('actor_revoked', { detail: 'Sign in again.' });
    const effective = await this.#options.closures.person(holder, claims.env_id, live.versions);
    const scopes = delegated || claims.limited === true ? this.#narrow(effective, claims) : effective;
    return {
      principal: delegated ? 'delegated' : 'user',
      scopes,
      caller: {
        kind: delegated ? 'delegated' : 'user',
        userId,
        service: delegated ? ownService(assisted ? claims.client_id : claims.sub) : undefined,
        subject: claims.sub,
        clientId: claims.client_id,
        envId: claims.env_id,
        authEnvId: claims.auth_env,
        thumbprint: bound,
        vertical: claims.vertical,
        platformAdmin: (claims.limited === true ? scopes : effective).has('sys:sys:admin'),
        bound: bound !== undefined,
        email: claims.email,
        emailVerified: claims.email_verified ?? false,
        sessionId: claims.sid,
      },
    };
  }

  /** What a token leaves of its holder's scopes; worked out again when those are others. */
  #narrow(effective: ReadonlySet<string>, claims: Claims): ReadonlySet<string> {
    const known = this.#narrowed.get(claims);
    if (known?.effective === effective) return known.scopes;
    const scopes = intersect(effective, parseScopes(claims.scope));
    this.#narrowed.set(claims, { effective, scopes });
    return scopes;
  }

  async #claimsIn(authorization: string): Promise<Claims> {
    const token = /^Bearer ([A-Za-z0-9._~+/=-]+)$/.exec(authorization)?.[1];
    if (!token || token.length > MAX_TOKEN_LENGTH) throw kernelProblem('unauthenticated', { detail: 'The Authorization header must be `Bearer` and one token.' });
    const key = hash('sha256', token, 'base64');
    const claims = this.#verified.get(key) ?? (await this.#verifySignature(token));
    keep(this.#verified, key, claims, CACHE_LIMIT);
    keep(this.#recent, authorization, claims, RECENT);
    return claims;
  }

  async #verifySignature(token: string): Promise<Claims> {
    const invalid = (detail: string) => kernelProblem('unauthenticated', { detail });
    const [head = '', body = '', signature = '', ...rest] = token.split('.');
    const header = decode(head) as { typ?: string; alg?: string; kid?: string } | undefined;
    const claims = decode(body) as Claims | undefined;
    if (!header || !claims || !signature || rest.length > 0) throw invalid('The token is not a signed JWT.');
    if (header.typ?.toLowerCase() !== 'at+jwt' || !header.alg || !(header.alg in DIGESTS) || !header.kid) throw invalid('The token is not an access token of this platform.');
    const found = await this.#options.keys.find(header.kid);
    if (!found || found.alg !== header.alg) throw invalid('The token is signed by a key this platform does not publish.');
    const key = header.alg === 'ES256' ? { key: found.key, dsaEncoding: 'ieee-p1363' as const } : found.key;
    if (!verify(DIGESTS[header.alg], Buffer.from(`${head}.${body}`), key, Buffer.from(signature, 'base64url'))) throw invalid('The signature of the token is false.');
    if (typeof claims.iss !== 'string' || !this.#options.issuers(claims.iss)) throw invalid('The token was issued elsewhere.');
    if (typeof claims.sub !== 'string' || typeof claims.exp !== 'number' || !claims.aud) throw invalid('The token lacks sub, aud or exp.');
    return claims;
  }

  #checkTime({ exp, nbf }: Claims): void {
    const now = this.#now() / 1000;
    if (now > exp + LEEWAY_S) throw kernelProblem('unauthenticated', { detail: 'The token has expired.' });
    if (nbf !== undefined && now < nbf - LEEWAY_S) throw kernelProblem('unauthenticated', { detail: 'The token is not valid yet.' });
  }
}

/** A workload as handlers see it. */
export function machineCaller(name: string, thumbprint: string | undefined, vertical: string | undefined, bound: boolean): Caller {
  return {
    kind: 'machine',
    userId: undefined,
    service: ownService(name),
    subject: name,
    clientId: name,
    envId: undefined,
    authEnvId: undefined,
    thumbprint,
    vertical,
    platformAdmin: false,
    bound,
    email: undefined,
    emailVerified: false,
    sessionId: undefined,
  };
}

/** A caller's own service is its workload name up to the first hyphen (G-K-09). */
const ownService = (workload: string): string => workload.split('-')[0] as string;
const intersect = (left: ReadonlySet<string>, right: ReadonlySet<string>): ReadonlySet<string> => new Set([...left].filter(scope => right.has(canonicalScope(scope))));

/** Puts into a cache what it gives up oldest first. */
function keep<V>(cache: Map<string, V>, key: string, value: V, limit: number): void {
  cache.set(key, value);
  if (cache.size > limit) cache.delete(cache.keys().next().value as string);
}

function decode(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString());
  } catch {
    return undefined;
  }
}
