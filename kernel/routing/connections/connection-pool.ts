import type { FairShare, Logger } from '@platform/sdk';
import type { Client } from 'undici';
import { kernelProblem } from '../../base/kernel-problem.ts';

/** How much may be under way at once between services. */
export interface BackendLimits {
  /** Ordinary requests of one caller to one instance of a service. */
  readonly connections: number;
  /** Streams, long polls, uploads and slow answers of the whole process. */
  readonly streams: number;
  /** Those of them that come from one address outside. */
  readonly streamsPerAddress: number;
  /** How long a request waits for a connection. */
  readonly waitMs: number;
}
export const DEFAULT_LIMITS: BackendLimits = { connections: 256, streams: 10_000, streamsPerAddress: 4_096, waitMs: 2_000 };

/** What is taken: a connection for one request. */
export interface Wanted {
  /** Known to last: a stream, a long poll, an upload. */
  readonly long: boolean;
  /** Whose it is: an address outside, or the calling workload. */
  readonly party: string;
  /** A connection that nobody used before: what was idle may be over without our knowing (ING-041). */
  readonly fresh?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}
export interface ConnectionPoolParts {
  readonly name: string;
  readonly connect: () => Client;
  readonly limits: BackendLimits;
  /** Places of everything that lasts, shared by all pools of the process. */
  readonly lasting: FairShare;
  readonly log: Logger;
  readonly now?: () => number;
}
export interface PoolFigures {
  ordinary: number;
  lasting: number;
  waiting: number;
  idle: number;
  lost: number;
  refused: number;
}

interface Waiter {
  readonly wanted: Wanted;
  readonly until: number;
  readonly grant: (lease: Lease) => void;
  readonly fail: (error: unknown) => void;
}

/** A request that lasts longer than this leaves the bound of ordinary ones. */
const MOMENT_MS = 250;
const IDLE = 64;
const MAX_WAITING = 1_024;
/** Connections that are made at once for ordinary requests: in a burst the first that are there serve it sooner than one for each. */
const OPENING = 16;
const TICK_MS = 50;
const SAID_EVERY_MS = 10_000;

/**
 * Connections to one instance of a service, each lent to one request at a time (ING-040). Ordinary requests are bounded and wait with a
 * deadline. What lasts is counted apart: what says so at once, and what has lasted a moment, so that no stream, slow reader or upload
 * holds the place of an ordinary request (F-17). A connection that failed is never lent again, and costs no place (F-16).
 */
export class ConnectionPool {
  readonly #parts: ConnectionPoolParts;
  readonly #now: () => number;
  readonly #idle: Client[] = [];
  /** Oldest first. */
  readonly #ordinary = new Set<Lease>();
  readonly #lasting = new Set<Lease>();
  /** Of ordinary requests, and not there yet. */
  readonly #opening = new Set<Client>();
  /** By party, who is served next first: nobody waits behind all of somebody else's. */
  readonly #waiting = new Map<string, Set<Waiter>>();
  #ticking: NodeJS.Timeout | undefined;
  #closed = false;
  #lost = 0;
  #refused = 0;
  #said = { at: Number.NEGATIVE_INFINITY, lost: 0, refused: 0 };

  constructor(parts: ConnectionPoolParts) {
    this.#parts = parts;
    this.#now = parts.now ?? (() => performance.now());
  }

  get figures(): PoolFigures {
    return {
      ordinary: this.#ordinary.size,
      lasting: this.#lasting.size,
      waiting: [...this.#waiting.values()].reduce((sum, { size }) => sum + size, 0),
      idle: this.#idle.length,
      lost: this.#lost,
      refused: this.#refused,
    };
  }

  /** A connection for one request. Throws `no_backend` when none came free in time, `too_many_streams` for one stream too many. */
  async take(wanted: Wanted): Promise<Lease> {
    wanted.signal?.throwIfAborted();
    if (wanted.long) return this.#lendLasting(wanted);
    if (this.#waiting.size === 0 && this.#hasPlace()) return this.#lend(wanted);
    if ((this.#waiting.get(wanted.party)?.size ?? 0) >= MAX_WAITING) throw this.#busy();
    return this.#wait(wanted);
  }

  /** Takes back a connection: sound, to be used again; else it is gone, and counts as lost unless its own request was given up. */
  takeBack(lease: Lease, state: 'sound' | 'given up' | 'lost', cause?: unknown): void {
    if (!this.#ordinary.delete(lease) && !this.#lasting.delete(lease)) return;
    lease.place?.[Symbol.dispose]();
    this.#opening.delete(lease.client);
    if (state === 'sound' && !this.#closed && this.#idle.length < IDLE) this.#idle.push(lease.client);
    else void lease.client.destroy().catch(() => undefined);
    if (state === 'lost' && !lease.ended) {
      this.#lost += 1;
      this.#say(cause);
    }
    this.#serve();
  }

  /** Finishes what is under way and opens nothing more. */
  close(): void {
    this.#closed = true;
    for (const client of this.#idle.splice(0)) void client.destroy().catch(() => undefined);
    for (const waiters of this.#waiting.values()) for (const waiter of waiters) waiter.fail(this.#busy());
    this.#waiting.clear();
    clearInterval(this.#ticking);
  }

  async destroy(): Promise<void> {
    this.close();
    await Promise.all([...this.#ordinary, ...this.#lasting].map(({ client }) => client.destroy().catch(() => undefined)));
  }

  #lendLasting(wanted: Wanted): Lease {
    const lease = new Lease(this.#client(wanted), wanted.party, this.#now());
    if (this.#makeLasting(lease)) return lease;
    this.#idle.push(lease.client);
    this.#refused += 1;
    this.#say(undefined);
    throw kernelProblem('too_many_streams', {
      detail: 'Too many streams, uploads or long polls are under way. End some, or try again later.',
      headers: { 'retry-after': '5' },
    });
  }

  #lend(wanted: Wanted): Lease {
    const idle = this.#idle.length;
    const client = this.#client(wanted);
    if (this.#idle.length === idle) this.#open(client);
    const lease = new Lease(client, wanted.party, this.#now());
    this.#ordinary.add(lease);
    return lease;
  }

  #client({ fresh }: Wanted): Client {
    return (fresh ? undefined : this.#idle.pop()) ?? this.#parts.connect();
  }

  #open(client: Client): void {
    this.#opening.add(client);
    const settled = () => void (this.#opening.delete(client) && this.#serve());
    client.once('connect', settled).once('connectionError', settled);
  }

  #makeLasting(lease: Lease): boolean {
    lease.place = this.#parts.lasting.admit(lease.party, () => lease.end());
    if (lease.place) this.#lasting.add(lease);
    return lease.place !== undefined;
  }

  /** Whether an ordinary request may go; the oldest of those under way may have lasted long enough to make room. */
  #hasPlace(): boolean {
    if (this.#closed || (this.#idle.length === 0 && this.#opening.size >= OPENING)) return false;
    if (this.#ordinary.size < this.#parts.limits.connections) return true;
    const [oldest] = this.#ordinary;
    if (!oldest || this.#now() - oldest.since < MOMENT_MS) return false;
    this.#ordinary.delete(oldest);
    if (!this.#makeLasting(oldest)) {
      this.#ordinary.add(oldest);
      oldest.end();
    }
    return this.#ordinary.size < this.#parts.limits.connections;
  }

  #wait(wanted: Wanted): Promise<Lease> {
    return new Promise((resolve, reject) => {
      const settled = () => wanted.signal?.removeEventListener('abort', gone);
      const waiter: Waiter = {
        wanted,
        until: this.#now() + this.#parts.limits.waitMs,
        grant: lease => (settled(), resolve(lease)),
        fail: error => (settled(), reject(error as Error)),
      };
      const gone = () => this.#leave(waiter) && waiter.fail(wanted.signal?.reason);
      wanted.signal?.addEventListener('abort', gone, { once: true });
      const waiters = this.#waiting.get(wanted.party);
      if (waiters) waiters.add(waiter);
      else this.#waiting.set(wanted.party, new Set([waiter]));
      this.#ticking ??= setInterval(() => this.#serve(), TICK_MS);
    });
  }

  /** Lends to those who wait, one of each party in turn, and tells those whose time is up. */
  #serve(): void {
    while (this.#waiting.size > 0 && this.#hasPlace()) {
      const [[party, waiters]] = this.#waiting as unknown as [[string, Set<Waiter>]];
      const [waiter] = waiters as unknown as [Waiter];
      this.#waiting.delete(party);
      waiters.delete(waiter);
      if (waiters.size > 0) this.#waiting.set(party, waiters);
      waiter.grant(this.#lend(waiter.wanted));
    }
    const now = this.#now();
    for (const waiters of this.#waiting.values()) {
      for (const waiter of waiters) {
        if (waiter.until > now) break;
        this.#leave(waiter);
        waiter.fail(this.#busy());
      }
    }
    if (this.#waiting.size > 0) return;
    clearInterval(this.#ticking);
    this.#ticking = undefined;
  }

  #leave(waiter: Waiter): boolean {
    const { party } = waiter.wanted;
    const waiters = this.#waiting.get(party);
    const left = waiters?.delete(waiter) ?? false;
    if (waiters?.size === 0) this.#waiting.delete(party);
    return left;
  }

  #busy(): Error {
    this.#refused += 1;
    this.#say(undefined);
    return kernelProblem('no_backend', {
      detail: 'Every connection to the backend is in use. Try again in a moment.',
      headers: { 'retry-after': '3' },
    });
  }

  /** Once in ten seconds at most, with how many there were since. */
  #say(cause: unknown): void {
    const now = this.#now();
    if (now - this.#said.at < SAID_EVERY_MS) return;
    const [lost, refused] = [this.#lost - this.#said.lost, this.#refused - this.#said.refused];
    this.#said = { at: now, lost: this.#lost, refused: this.#refused };
    const { ordinary, lasting, waiting } = this.figures;
    this.#parts.log.warn(
      { pool: this.#parts.name, lost, refused, ordinary, lasting, waiting, err: cause },
      'backend connections were lost or refused; lost ones are replaced',
    );
  }
}

/** One connection, lent to one request. */
export class Lease {
  readonly client: Client;
  readonly party: string;
  readonly since: number;
  place: Disposable | undefined;
  /** Ended for somebody else. */
  ended = false;

  constructor(client: Client, party: string, since: number) {
    this.client = client;
    this.party = party;
    this.since = since;
  }

  /** Somebody else needs the place: what is under way fails. */
  end(): void {
    this.ended = true;
    void this.client.destroy(new Error('the connection was needed for somebody else')).catch(() => undefined);
  }
}
