import { hash } from 'node:crypto';
import { type Caller, type Possession, type Principal, SYSTEM, type TokenClaims as Claims } from '@platform/sdk';
import { LRUCache } from 'lru-cache';
import { kernelProblem } from '../../base/kernel-problem.ts';
import type { AccessClosures } from './access-closure.ts';
import { proofRequired } from './dpop-proof.ts';
import type { KeySet } from './key-set.ts';
import { canonicalScope, parseScopes } from './scope-name.ts';
import { readSignedToken } from './signed-token.ts';
import type { Peer } from '../certificates/tls.ts';

const LEEWAY_S = 30;
const CACHE_LIMIT = 10_000;
const RECENT = 32;
/** Names of schemes are compared without regard to case (RFC 9110 11.1). */
const CREDENTIALS = /^(bearer|dpop) +([A-Za-z0-9._~+/=-]+)$/i;

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
  readonly peer: Pick<Peer, 'workload' | 'thumbprint'> | undefined;
  /** Service that answers; user and delegated tokens must be meant for it. */
  readonly service: string;
  /** Tenant the ingress injected, where the peer is the ingress. */
  readonly tenantEnvId: string | undefined;
  /** What a proof of possession is compared with (RFC 9449); where it is missing, tokens that need one are refused. */
  readonly shown?: Pick<Possession, 'proof' | 'method' | 'urls'>;
}
/** A token as it was shown. */
interface Shown {
  readonly scheme: 'bearer' | 'dpop';
  readonly token: string;
  readonly claims: Claims;
}

export interface VerifierOptions {
  readonly keys: KeySet;
  readonly closures: AccessClosures;
  readonly workloads: WorkloadGrants;
  /** The environment whose sign-in origin this is. */
  readonly issuers: (issuer: string) => Promise<string | undefined>;
  readonly possession: (shown: Possession) => Promise<void>;
  readonly now?: () => number;
}

/**
 * Verifies callers in the order of G-K-06. Every refusal is a problem that says what is wrong with the credential, never with the token's
 * text.
 */
export class Verifier {
  readonly #options: VerifierOptions;
  readonly #now: () => number;
  /** Signature checks once per token; time, binding, revocation and scopes are checked on every request. */
  readonly #verified = new LRUCache<string, Claims>({ max: CACHE_LIMIT });
  /** The few that were sent last, by the header itself: who sends a thousand requests a second sends one token. */
  readonly #recent = new LRUCache<string, Shown>({ max: RECENT });
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
    const shown = this.#recent.get(request.authorization) ?? (await this.#shownIn(request.authorization));
    const { claims } = shown;
    this.#checkTime(claims);
    const bound = claims.cnf?.['x5t#S256'];
    if (bound !== undefined && bound !== request.peer?.thumbprint)
      throw kernelProblem('unauthenticated', { detail: 'The token is bound to another client certificate.' });
    await this.#checkPossession(shown, request);
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
    const revocations = [
      `revoked:sub:${name}`,
      ...(thumbprint ? [`revoked:cert:${thumbprint}`] : []),
      ...(jti ? [`revoked:jti:${jti}`] : []),
    ];
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
    if (!audience.includes(request.service))
      throw kernelProblem('unauthenticated', { detail: `The token is not meant for ${request.service}.` });
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

  async #shownIn(authorization: string): Promise<Shown> {
    const [, scheme, token] = CREDENTIALS.exec(authorization) ?? [];
    if (!scheme || !token)
      throw kernelProblem('unauthenticated', { detail: 'The Authorization header must be `Bearer` or `DPoP` and one token.' });
    const key = hash('sha256', token, 'base64');
    const claims = this.#verified.get(key) ?? (await this.#read(token));
    const shown: Shown = { scheme: scheme.toLowerCase() as Shown['scheme'], token, claims };
    this.#verified.set(key, claims);
    this.#recent.set(authorization, shown);
    return shown;
  }

  async #read(token: string): Promise<Claims> {
    const claims = await readSignedToken(token, kid => this.#options.keys.find(kid));
    const envId = await this.#options.issuers(claims.iss);
    // A person's token comes from the sign-in host of the person's own environment.
    const issued = envId !== undefined && (claims.token_type !== 'access' || envId === (claims.auth_env ?? claims.env_id ?? envId));
    if (!issued) throw kernelProblem('unauthenticated', { detail: 'The token was issued elsewhere.' });
    return claims;
  }

  /** A token that is bound to a key is no bearer token, and one that is not is good under no other scheme (RFC 9449 7.1, 7.2). */
  async #checkPossession({ scheme, token, claims }: Shown, { shown }: VerifyRequest): Promise<void> {
    const jkt = claims.cnf?.jkt;
    if (jkt === undefined && scheme === 'bearer') return;
    if (jkt === undefined) throw proofRequired('The token is bound to no key; send it as Bearer.');
    if (scheme === 'bearer') throw proofRequired('The token is bound to a key; send it with the scheme DPoP and a proof.');
    if (!shown) throw proofRequired('A token that is bound to a key is not taken here.');
    await this.#options.possession({ ...shown, token, jkt });
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
const intersect = (left: ReadonlySet<string>, right: ReadonlySet<string>): ReadonlySet<string> =>
  new Set([...left].filter(scope => right.has(canonicalScope(scope))));
