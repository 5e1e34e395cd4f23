import { X509Certificate } from 'node:crypto';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import type { KeyValue, Logger } from '@platform/sdk';
import { thumbprintOf } from './authority.ts';

/** Where the certificate authority says what it revoked: all of it, by thumbprint and space, beside a stamp that changes with it. */
const [LIST, STAMP, TOLD] = ['revoked:certs', 'revoked:certs:stamp', 'revoked:changed'];
const POLL_MS = 4_000;
const USED_S = 30 * 86_400;
const MOST_USED = 1_000;

export interface RevokedCertificatesParts {
  readonly kv: Pick<KeyValue, 'call' | 'pipeline' | 'subscribe'>;
  readonly log: Logger;
  readonly now: () => Date;
}

/**
 * Certificates of the platform that were revoked and have not expired, known to every process within a moment by message and within 4 s by
 * itself (hardening H-02). It stays as it was while the store is away. Who still shows one is written down, for operators.
 */
export class RevokedCertificates implements AsyncDisposable {
  readonly #parts: RevokedCertificatesParts;
  readonly #listeners = new Set<(thumbprints: ReadonlySet<string>) => void>();
  readonly #used = new Map<string, { count: number; last: string }>();
  #revoked = new Set<string>();
  #stamp = '';
  #subscription: AsyncDisposable | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: RevokedCertificatesParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    this.#subscription = await this.#parts.kv.subscribe(TOLD, thumbprint => this.#add([thumbprint]));
    await this.look().catch(error => this.#parts.log.warn({ err: error }, 'revoked certificates could not be read; asked again'));
    this.#timer = setInterval(
      () =>
        void this.look().catch(error =>
          this.#parts.log.warn({ err: error }, 'revoked certificates could not be read; those that are known stay refused'),
        ),
      POLL_MS,
    );
    this.#timer.unref();
  }

  has(thumbprint: string): boolean {
    return this.#revoked.has(thumbprint);
  }

  /** Whether a certificate that somebody shows was revoked; if so, that it was shown is kept. */
  refuses(thumbprint: string): boolean {
    if (!this.#revoked.has(thumbprint)) return false;
    const used = this.#used.get(thumbprint) ?? { count: 0, last: '' };
    if (this.#used.size < MOST_USED || used.count > 0)
      this.#used.set(thumbprint, { count: used.count + 1, last: this.#parts.now().toISOString() });
    return true;
  }

  /** Hears of those that are revoked from now on. */
  onRevoked(listener: (thumbprints: ReadonlySet<string>) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => this.#listeners.delete(listener) };
  }

  /** The check of a server's certificate on a connection that is being made. */
  readonly checkServer = (host: string, certificate: PeerCertificate): Error | undefined => {
    if (this.refuses(thumbprintOf(new X509Certificate(certificate.raw)))) return new Error(`the certificate of ${host} was revoked`);
    return checkServerIdentity(host, certificate);
  };

  /** One look at the store: what changed there, and what was seen here. */
  async look(): Promise<void> {
    const { kv } = this.#parts;
    const stamp = String((await kv.call('GET', STAMP)) ?? '');
    if (stamp !== this.#stamp && stamp !== '') {
      const listed = String((await kv.call('GET', LIST)) ?? '')
        .split(' ')
        .filter(Boolean);
      this.#stamp = stamp;
      this.#add(listed);
      // What is no longer listed has expired.
      this.#revoked = new Set(listed);
    }
    await this.#tellUsed();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#subscription?.[Symbol.asyncDispose]();
  }

  #add(thumbprints: readonly string[]): void {
    const added = new Set(thumbprints.filter(thumbprint => !this.#revoked.has(thumbprint)));
    if (added.size === 0) return;
    for (const thumbprint of added) this.#revoked.add(thumbprint);
    for (const listener of this.#listeners) listener(added);
  }

  async #tellUsed(): Promise<void> {
    if (this.#used.size === 0) return;
    const used = [...this.#used];
    this.#used.clear();
    await this.#parts.kv.pipeline(
      used.flatMap(([thumbprint, { count, last }]) => [
        ['HINCRBY', `revoked:used:${thumbprint}`, 'count', count],
        ['HSET', `revoked:used:${thumbprint}`, 'last', last],
        ['EXPIRE', `revoked:used:${thumbprint}`, USED_S],
      ]),
    );
  }
}
