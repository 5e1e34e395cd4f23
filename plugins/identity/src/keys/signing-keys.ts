import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';
import type { Sealed, SealedBox } from '@platform/sdk';
import { calculateJwkThumbprint, type JWK } from 'jose';
import { ExternalSigningKey } from 'oidc-provider';
import type { Ctx, IdentityTx } from '../context.ts';

const makePair = promisify(generateKeyPair) as (type: string, options?: object) => Promise<{ privateKey: KeyObject; publicKey: KeyObject }>;
const KINDS = [
  { alg: 'EdDSA', type: 'ed25519', options: {} },
  { alg: 'ES256', type: 'ec', options: { namedCurve: 'P-256' } },
  { alg: 'ML-DSA-65', type: 'ml-dsa-65', options: {} },
  // ID tokens of applications that chose it; no service of the platform takes a token that it signed.
  { alg: 'RS256', type: 'rsa', options: { modulusLength: 2048 } },
] as const;
export type SigningAlg = (typeof KINDS)[number]['alg'];
type State = 'next' | 'current' | 'retired';

/** Until nothing signed by a retired key can be valid: the longest token, what verifiers cache, and a wide margin for clocks. */
const RETIRED_MS = 3_600_000;
/** A key signs only when every verifier has had time to read it: five minutes of cache (G-K-06), twice. */
const PUBLISHED_MS = 600_000;
const DAY_MS = 86_400_000;
const CHANNEL = 'auth_keys';

interface Row {
  readonly kid: string;
  readonly alg: SigningAlg;
  readonly state: State;
  readonly public_jwk: JWK;
  readonly wrapped: Sealed;
  readonly created_at: string;
  readonly activated_at: string | null;
  readonly retired_at: string | null;
}
interface Ring {
  /** What is published: current keys, those that will follow them, those that were before. */
  readonly published: readonly JWK[];
  /** For the protocol library, which signs with the first of an algorithm. */
  readonly jwks: readonly RingKey[];
  readonly verification: ReadonlyMap<string, { readonly alg: SigningAlg; readonly key: KeyObject }>;
  readonly signing: ReadonlyMap<SigningAlg, RingKey>;
  readonly stamp: string;
}
/** One key for all providers of the process: its private half never leaves here, and a signature takes no detour over another thread. */
class RingKey extends ExternalSigningKey {
  readonly #alg: SigningAlg;
  readonly #public: KeyObject;
  readonly #private: KeyObject;

  constructor({ kid, alg, jwk }: { kid: string; alg: SigningAlg; jwk: JWK }) {
    super();
    // The library has setters for these two, its types do not.
    Object.assign(this, { kid, alg });
    this.#alg = alg;
    this.#private = createPrivateKey({ key: jwk as JsonWebKey, format: 'jwk' });
    this.#public = createPublicKey(this.#private);
  }

  override keyObject(): KeyObject {
    return this.#public;
  }

  override sign(data: Uint8Array): Buffer {
    if (this.#alg === 'ES256') return sign('sha256', data, { key: this.#private, dsaEncoding: 'ieee-p1363' });
    return sign(this.#alg === 'RS256' ? 'sha256' : null, data, this.#private);
  }
}
/** What private halves are sealed for. */
export const SIGNING_KEY = 'signing-key';
const EMPTY: Ring = { published: [], jwks: [], verification: new Map(), signing: new Map(), stamp: '' };

/**
 * The one key set of the platform: Ed25519, ES256, ML-DSA-65 and RS256; private halves wrapped at rest (G-K-06, facts/identity 3). The life
 * of a key: `next` (published, signs nothing), `current` (signs), `retired` (published until all it signed has expired), gone.
 */
export class SigningKeys {
  readonly #ctx: Ctx;
  readonly #box: SealedBox;
  readonly #changed = new Set<() => void>();
  #ring: Ring = EMPTY;

  constructor(ctx: Ctx, box: SealedBox) {
    this.#ctx = ctx;
    this.#box = box;
  }

  get jwks(): readonly ExternalSigningKey[] {
    return this.#ring.jwks;
  }
  get publicJwks(): readonly JWK[] {
    return this.#ring.published;
  }
  verificationKey(kid: string): { readonly alg: SigningAlg; readonly key: KeyObject } | undefined {
    return this.#ring.verification.get(kid);
  }
  /** Calls back whenever other keys sign from now on. */
  onChange(listener: () => void): void {
    this.#changed.add(listener);
  }

  /** Loads the keys, making those that are missing, and hears of every rotation. Several processes at once end with the same set. */
  async start(): Promise<void> {
    await this.#ctx.db.tx(async tx => {
      await lock(tx);
      await this.#complete(tx);
    });
    await this.refresh();
    this.#ctx.own(
      await this.#ctx.db.listen(CHANNEL, () => {
        this.refresh().catch(error => this.#ctx.log.error({ err: error }, 'rotated signing keys could not be read yet'));
      }),
    );
  }

  /** Takes up what another process rotated. */
  async refresh(): Promise<void> {
    const rows = await this.#ctx.db.sql<Row[]>`select * from signing_keys order by state, created_at desc`;
    const live = rows.filter(({ retired_at }) => retired_at === null || Date.parse(retired_at) + RETIRED_MS > this.#now());
    const stamp = live.map(({ kid, state }) => `${kid} ${state}`).join(',');
    if (stamp === this.#ring.stamp) return;
    this.#ring = this.#ringOf(live, stamp);
    for (const changed of this.#changed) changed();
  }

  /** The next keys sign, the current ones retire, new ones are published. `undefined` when the next are not known everywhere yet. */
  async rotate(audit: (tx: IdentityTx, kids: readonly string[]) => Promise<void>): Promise<readonly string[] | undefined> {
    const rotated = await this.#ctx.db.tx(async tx => {
      await lock(tx);
      const now = this.#ctx.clock.now().toISOString();
      const next = await tx.sql<{ kid: string; created_at: string }[]>`select kid, created_at from signing_keys where state = 'next'`;
      if (next.length < KINDS.length || next.some(({ created_at }) => Date.parse(created_at) + PUBLISHED_MS > this.#now()))
        return undefined;
      await tx.sql`delete from signing_keys where state = 'retired' and retired_at < ${new Date(this.#now() - RETIRED_MS).toISOString()}`;
      await tx.sql`update signing_keys set state = 'retired', retired_at = ${now} where state = 'current'`;
      await tx.sql`update signing_keys set state = 'current', activated_at = ${now} where state = 'next'`;
      await this.#complete(tx);
      const kids = next.map(({ kid }) => kid);
      await audit(tx, kids);
      await tx.sql`select pg_notify(${CHANNEL}, '')`;
      return kids;
    });
    if (rotated) await this.refresh();
    return rotated;
  }

  /** Whether the keys that sign have done so for long enough. */
  async due(): Promise<boolean> {
    const oldest = new Date(this.#now() - this.#ctx.config.keyRotationDays * DAY_MS).toISOString();
    return (
      (await this.#ctx.db.sql<object[]>`select 1 from signing_keys where state = 'current' and activated_at < ${oldest} limit 1`).length > 0
    );
  }

  async list() {
    const rows = await this.#ctx.db.sql<
      Row[]
    >`select kid, alg, state, created_at, activated_at, retired_at from signing_keys order by state, alg, created_at desc`;
    return rows.map(({ kid, alg, state, created_at, activated_at, retired_at }) => ({
      kid,
      alg,
      state,
      created_at,
      activated_at,
      retired_at,
    }));
  }

  /** A signed token of our own making; `at+jwt` unless it is another kind. */
  token(claims: object, alg: SigningAlg, typ = 'at+jwt'): string {
    const current = this.#ring.signing.get(alg);
    if (!current) throw new Error(`no ${alg} signing key`);
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const signed = `${encode({ typ, alg, kid: current.kid as string })}.${encode(claims)}`;
    return `${signed}.${current.sign(Buffer.from(signed)).toString('base64url')}`;
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }

  /** Of every algorithm there is a key that signs and one that will. */
  async #complete(tx: IdentityTx): Promise<void> {
    const known = await tx.sql<{ alg: string; state: State }[]>`select alg, state from signing_keys where state <> 'retired'`;
    for (const { alg, type, options } of KINDS) {
      for (const state of ['current', 'next'] as const) {
        if (known.some(row => row.alg === alg && row.state === state)) continue;
        const { privateKey, publicKey } = await makePair(type, options);
        const jwk = { ...(privateKey.export({ format: 'jwk' }) as JWK), alg, use: 'sig' };
        const kid = await calculateJwkThumbprint(jwk);
        const publicJwk = { ...(publicKey.export({ format: 'jwk' }) as JWK), alg, use: 'sig' };
        const now = this.#ctx.clock.now().toISOString();
        const wrapped = tx.sql.json(this.#box.seal(SIGNING_KEY, JSON.stringify({ ...jwk, kid })));
        await tx.sql`insert into signing_keys ${tx.sql.row({
          kid,
          alg,
          public_jwk: tx.sql.json({ ...publicJwk, kid }),
          wrapped,
          state,
          created_at: now,
          activated_at: state === 'current' ? now : null,
        })}`;
      }
    }
  }

  #ringOf(rows: readonly Row[], stamp: string): Ring {
    const opened = rows
      .filter(({ state }) => state !== 'next')
      .map(({ kid, alg, state, wrapped }) => {
        const text = this.#box.open(SIGNING_KEY, wrapped);
        if (text === undefined)
          throw new Error(
            'a signing key does not open under PLATFORM_AUTH_KEY_ENCRYPTION_REF or PLATFORM_AUTH_PREVIOUS_KEY_ENCRYPTION_REFS',
          );
        return { alg, state, key: new RingKey({ kid, alg, jwk: JSON.parse(text) as JWK }) };
      });
    return {
      stamp,
      jwks: opened.map(({ key }) => key),
      published: rows.map(({ public_jwk }) => public_jwk),
      verification: new Map(
        rows.map(({ kid, alg, public_jwk }) => [kid, { alg, key: createPublicKey({ key: public_jwk as JsonWebKey, format: 'jwk' }) }]),
      ),
      signing: new Map(opened.filter(({ state }) => state === 'current').map(({ alg, key }) => [alg, key])),
    };
  }
}

const lock = (tx: IdentityTx) => tx.sql`select pg_advisory_xact_lock(hashtextextended('platform:auth:keys', 0))`;
