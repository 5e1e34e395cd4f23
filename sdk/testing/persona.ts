import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { newId } from '@platform/kernel/base/ids';

/** Somebody who calls in a test: a person or a workload, with exactly the scopes named. */
export interface Persona {
  readonly kind: 'user' | 'machine' | 'delegated';
  readonly id: string;
  readonly envId: string;
  readonly scopes: readonly string[];
  readonly email: string;
  /** The vertical a workload's token names; none where there is none. */
  readonly vertical: string | undefined;
}

const ENV = '00000000-0000-7000-8000-000000000002';

/** Makes personas; each has an id of its own. */
export const as = {
  user: (...scopes: string[]): Persona => ({
    kind: 'user',
    id: newId(),
    envId: ENV,
    scopes,
    email: 'ada@example.org',
    vertical: 'platform',
  }),
  userIn: (envId: string, ...scopes: string[]): Persona => ({
    kind: 'user',
    id: newId(),
    envId,
    scopes,
    email: 'ada@example.org',
    vertical: 'platform',
  }),
  /** A person acting through a workload, as the gateway's exchange makes her. */
  delegated: (envId: string, ...scopes: string[]): Persona => ({
    kind: 'delegated',
    id: newId(),
    envId,
    scopes,
    email: 'ada@example.org',
    vertical: 'platform',
  }),
  machine: (name: string, ...scopes: string[]): Persona => ({
    kind: 'machine',
    id: name,
    envId: ENV,
    scopes,
    email: '',
    vertical: 'platform',
  }),
};

/** Each environment has a sign-in host of its own; the kit names it after the environment. */
const issuerOf = (envId: string): string => `https://auth.${envId === ENV ? 'ops.sys' : `${envId}.test`}.localhost:8443`;

/** The environment that {@link TokenMint} issues for under this name. */
export function environmentOf(issuer: string): string | undefined {
  const label = /^https:\/\/auth\.([0-9a-z.-]+)\.localhost:8443$/.exec(issuer)?.[1];
  return label === 'ops.sys' ? ENV : label?.endsWith('.test') ? label.slice(0, -'.test'.length) : undefined;
}

/** Signs tokens the kernel under test accepts: the kit's own key stands for the identity service's. */
export class TokenMint {
  readonly kid = 'test-key';
  readonly #private: KeyObject;
  readonly #public: KeyObject;

  readonly #now: () => number;
  readonly #held = new WeakMap<Persona, { readonly token: string; readonly at: number }>();

  /** `now` in milliseconds: tokens are as old as the clock under test says. */
  constructor(now: () => number = Date.now) {
    this.#now = now;
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    this.#private = privateKey;
    this.#public = publicKey;
  }

  get jwks(): { keys: JsonWebKey[] } {
    return { keys: [{ ...this.#public.export({ format: 'jwk' }), kid: this.kid, alg: 'EdDSA', use: 'sig' } as JsonWebKey] };
  }

  /** The token a persona has in its hands for a service, as its client sends it again and again; a new one each minute. */
  current(persona: Persona, service: string): string {
    const now = this.#now();
    const held = this.#held.get(persona);
    if (held && now - held.at < 60_000) return held.token;
    const token = this.token(persona, service, persona.kind === 'machine' ? { cnf: { 'x5t#S256': 'test' } } : {});
    this.#held.set(persona, { token, at: now });
    return token;
  }

  /** A token for a persona and a service; `changes` overrides claims, `header` the JOSE header. */
  token(
    persona: Persona,
    service: string,
    changes: Readonly<Record<string, unknown>> = {},
    header: Readonly<Record<string, unknown>> = {},
  ): string {
    const now = Math.floor(this.#now() / 1_000);
    const claims = {
      iss: issuerOf(persona.envId),
      sub: persona.kind === 'delegated' ? 'bff-delegator' : persona.id,
      aud: [service],
      iat: now,
      nbf: now,
      exp: now + 900,
      jti: newId(),
      client_id: persona.kind === 'machine' ? persona.id : 'console',
      scope: persona.scopes.join(' '),
      token_type: persona.kind === 'machine' ? 'm2m' : persona.kind === 'delegated' ? 'delegated' : 'access',
      ...(persona.kind === 'machine'
        ? { vertical: persona.vertical }
        : { env_id: persona.envId, auth_env: persona.envId, email: persona.email, email_verified: true, sid: `s-${persona.id}` }),
      ...(persona.kind === 'delegated' ? { act: { sub: persona.id } } : {}),
      ...changes,
    };
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const signed = `${encode({ typ: 'at+jwt', alg: 'EdDSA', kid: this.kid, ...header })}.${encode(claims)}`;
    return `${signed}.${sign(null, Buffer.from(signed), this.#private).toString('base64url')}`;
  }
}
