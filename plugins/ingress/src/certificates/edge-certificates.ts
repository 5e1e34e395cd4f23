import { X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import * as x509 from '@peculiar/x509';
import { BoundedMap, isProblem } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import type { Mapping } from '../host-mappings.ts';
import { bootstrapCertificate, edgeKey } from './bootstrap-certificate.ts';

interface Held {
  readonly context: SecureContext;
  readonly thumbprint: string;
  readonly renewAt: number;
  readonly expiresAt: number;
  readonly source: Mapping['source'];
}
interface Answer {
  readonly key: string;
  readonly chain: string;
  readonly notAfter: string;
}
type Asked = Pick<Mapping, 'hostname' | 'source'>;

/** A name the authority refused is not asked for again so soon, nor one it works on, nor anything while it is away. */
const [REFUSED_MS, RUNNING_MS, AWAY_MS] = [30_000, 1_000, 1_000];
const RENEW_EVERY_MS = 60_000;
const LOOK_EVERY_MS = 4_000;
/** A name whose order runs at the authority is asked for again while its handshakes wait. */
const [POLL_EVERY_MS, POLL_FOR_MS] = [500, 15_000];
/** Names that somebody waits for at one time. */
const MOST_FETCHING = 1_000;
/** Names that are waited for; the one asked for longest ago goes first. */
const MOST_WAITS = 10_000;
/** Questions under way: as many as the authority signs and lets wait (G-K-23). A name whose order only runs has none. */
const BUDGET = 48;
export const EDGE_TLS = { minVersion: 'TLSv1.3', ecdhCurve: 'X25519MLKEM768:X25519:P-256' } as const;

/**
 * Browser-facing leafs, P-256 by name: one fetch per name at a time and a budget for all, refreshed at two thirds of life, refusals
 * remembered (G-K-23, H-04). Until the authority has answered once, a self-signed certificate stands in (ING-014); the next handshake after
 * that has the issued one (ING-015). What was revoked is dropped. Held in memory alone, as many as the settings say; a new one takes the
 * place of the one that nobody has asked for the longest.
 */
export class EdgeCertificates {
  readonly #ctx: Ctx;
  readonly #own: string;
  readonly #held = new Map<string, Held>();
  readonly #fetching = new Map<string, Promise<SecureContext | undefined>>();
  readonly #later = new BoundedMap<string, number>(MOST_WAITS);
  #bootstrap: { context: SecureContext; expiresAt: number } | undefined;
  /** The authority has answered: from then on a missing certificate is an error, not a beginning. */
  #healthy = false;
  #awaySaid = false;
  #revokedAt = '';
  #evicted = 0;
  #asking = 0;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#own = ctx.platform.host('proxy');
  }

  /** Begins to ask for the own certificate, to renew, and to hear of what is revoked. */
  async start(): Promise<void> {
    const ctx = this.#ctx;
    ctx.own(await ctx.kv.subscribe('revoked:changed', thumbprint => this.#drop(new Set([thumbprint]))));
    ctx.own(ctx.every(LOOK_EVERY_MS, () => this.#look()));
    ctx.own(ctx.every(RENEW_EVERY_MS, () => this.#renew()));
    const asking = ctx.every(AWAY_MS, async () => {
      if (this.#healthy) asking[Symbol.dispose]();
      else await this.contextFor({ hostname: this.#own, source: 'platform' });
    });
    ctx.own(asking);
  }

  get figures(): Readonly<Record<string, number>> {
    return {
      edge_certificates: this.#held.size,
      edge_certificates_fetching: this.#fetching.size,
      edge_certificates_evicted_total: this.#evicted,
      edge_bootstrap: this.#healthy ? 0 : 1,
    };
  }

  async contextFor({ hostname, source }: Asked): Promise<SecureContext | undefined> {
    const now = this.#now();
    const held = this.#held.get(hostname);
    const living = held && held.expiresAt > now ? held : undefined;
    if (living) this.#keep(hostname, living);
    if (living && living.renewAt > now) return living.context;
    if ((this.#later.get(hostname) ?? 0) > now) return living?.context ?? this.#standIn();
    let fetching = this.#fetching.get(hostname);
    if (!fetching) {
      if (this.#asking >= BUDGET || this.#fetching.size >= MOST_FETCHING) return living?.context;
      fetching = this.#fetch({ hostname, source }).finally(() => this.#fetching.delete(hostname));
      this.#fetching.set(hostname, fetching);
    }
    // An old certificate serves while its successor is on the way.
    return living?.context ?? (await fetching) ?? this.#standIn();
  }

  async #fetch(asked: Asked): Promise<SecureContext | undefined> {
    const { hostname } = asked;
    try {
      const answer = await this.#answered(asked);
      if (!answer) return void this.#wait(hostname, RUNNING_MS);
      const now = this.#now();
      const context = createSecureContext({ key: answer.key, cert: answer.chain, ...EDGE_TLS });
      const expiresAt = Date.parse(answer.notAfter);
      const thumbprint = Buffer.from(new X509Certificate(answer.chain).fingerprint256.replaceAll(':', ''), 'hex').toString('base64url');
      this.#keep(hostname, { context, thumbprint, expiresAt, renewAt: now + ((expiresAt - now) * 2) / 3, source: asked.source });
      this.#later.delete(hostname);
      return context;
    } catch (error) {
      const refused = isProblem(error) && error.status >= 400 && error.status < 500;
      // While the authority is away it is asked every second: one line says so.
      if (refused || !this.#awaySaid) this.#ctx.log.warn({ host: hostname, err: error }, 'no certificate for a host');
      this.#awaySaid = !refused;
      if (refused) this.#healthy = true;
      this.#wait(hostname, refused ? REFUSED_MS : AWAY_MS);
      return undefined;
    }
  }

  /** What the authority has, asked for twice a second for fifteen seconds where its order runs (G-K-23, KRN-029). */
  async #answered(asked: Asked): Promise<Answer | undefined> {
    const until = this.#now() + POLL_FOR_MS;
    for (;;) {
      this.#asking += 1;
      const answer = await this.#ask(asked).finally(() => (this.#asking -= 1));
      this.#healthy = true;
      this.#awaySaid = false;
      if (answer || this.#now() >= until) return answer;
      await this.#pause(POLL_EVERY_MS);
    }
  }

  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    using _timer = this.#ctx.every(ms, () => resolve());
    await promise;
  }

  /**
   * A name of a customer is the authority's to have proven elsewhere: it brings the key along. One that it signs itself wants a request.
   */
  async #ask({ hostname, source }: Asked): Promise<Answer | undefined> {
    const { authority } = this.#ctx.services;
    if (source === 'custom') {
      try {
        const answer = await authority.fetchCertificate({ body: { domain: hostname } });
        // 202: the order is running.
        if (!answer?.key_pem) return undefined;
        return { key: answer.key_pem, chain: answer.chain_pem, notAfter: answer.not_after };
      } catch (error) {
        if (!isProblem(error) || error.code !== 'bad_csr') throw error;
      }
    }
    const { pem, pair, algorithm } = await edgeKey();
    const csr = await x509.Pkcs10CertificateRequestGenerator.create({
      name: `CN=${hostname.slice(0, 64)}`,
      keys: pair,
      signingAlgorithm: algorithm,
    });
    const { chain_pem: chain, not_after: notAfter } = await authority.fetchCertificate({
      body: { domain: hostname, csr: csr.toString('pem') },
    });
    return { key: pem, chain, notAfter };
  }

  async #standIn(): Promise<SecureContext | undefined> {
    if (this.#healthy) return undefined;
    const now = this.#now();
    if (!this.#bootstrap || this.#bootstrap.expiresAt - now < 3_600_000) {
      const { key, cert, notAfter } = await bootstrapCertificate(this.#own, new Date(now));
      this.#bootstrap = { context: createSecureContext({ key, cert, ...EDGE_TLS }), expiresAt: notAfter.getTime() };
    }
    return this.#bootstrap.context;
  }

  async #renew(): Promise<void> {
    const now = this.#now();
    const due = [...this.#held].filter(([, { renewAt }]) => renewAt <= now);
    // A few at a time: nobody waits for them.
    for (const [hostname, { source, expiresAt }] of due.slice(0, 8)) {
      if (expiresAt <= now) this.#held.delete(hostname);
      else await this.contextFor({ hostname, source });
    }
  }

  /** Behind the word of it: what is revoked, whenever that list changed. */
  async #look(): Promise<void> {
    try {
      const stamp = String((await this.#ctx.kv.call('GET', 'revoked:certs:stamp')) ?? '');
      if (stamp === this.#revokedAt) return;
      this.#drop(new Set(String((await this.#ctx.kv.call('GET', 'revoked:certs')) ?? '').split(' ')));
      this.#revokedAt = stamp;
    } catch (error) {
      this.#ctx.log.debug({ err: error }, 'revoked certificates could not be read; asked again');
    }
  }

  #drop(thumbprints: ReadonlySet<string>): void {
    for (const [hostname, { thumbprint }] of this.#held) if (thumbprints.has(thumbprint)) this.#held.delete(hostname);
  }

  /** Keeps it as the latest that was asked for. */
  #keep(hostname: string, held: Held): void {
    this.#held.delete(hostname);
    this.#held.set(hostname, held);
    if (this.#held.size <= this.#ctx.config.certificates) return;
    this.#held.delete(this.#held.keys().next().value as string);
    this.#evicted += 1;
  }

  #wait(hostname: string, ms: number): void {
    this.#later.set(hostname, this.#now() + ms);
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }
}
