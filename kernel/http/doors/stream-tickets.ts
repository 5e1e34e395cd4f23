import { createHash, randomBytes } from 'node:crypto';
import type { Caller, KeyValue } from '@platform/sdk';
import { kernelProblem } from '../../base/kernel-problem.ts';
import type { Identity } from '../../identity/tokens/verifier.ts';

const LIFE_S = 30;

export interface Ticket {
  readonly ticket: string;
  readonly expires_in: number;
}
interface Kept {
  readonly caller: Caller;
  readonly expires_at: number;
}

/**
 * Tickets for the event streams of one service: minted by a caller with its credential, taken once from a URL within thirty seconds
 * (H-06, H-13). A URL that reaches an access log then holds nothing that opens anything. Life: minted → redeemed, or forgotten.
 */
export class StreamTickets {
  readonly #service: string;
  readonly #kv: KeyValue;
  readonly #now: () => number;
  readonly #live: (caller: Caller) => Promise<Identity>;

  /** `live`: what a caller may do at this moment. */
  constructor({
    service,
    kv,
    now,
    live,
  }: { service: string; kv: KeyValue; now: () => number; live: (caller: Caller) => Promise<Identity> }) {
    this.#service = service;
    this.#kv = kv;
    this.#now = now;
    this.#live = live;
  }

  async mint(door: string, caller: Caller): Promise<Ticket> {
    const ticket = randomBytes(32).toString('base64url');
    const kept: Kept = { caller, expires_at: this.#now() + LIFE_S * 1_000 };
    await this.#kv.call('SET', this.#key(door, ticket), JSON.stringify(kept), 'EX', LIFE_S);
    return { ticket, expires_in: LIFE_S };
  }

  /** Reads and forgets in one command: of many at once, one gets it. Of today's rights it carries those that opened the mint. */
  async redeem(door: string, ticket: string, gates: readonly string[]): Promise<Identity> {
    const text = /^[A-Za-z0-9_-]{43}$/.test(ticket) ? ((await this.#kv.call('GETDEL', this.#key(door, ticket))) as string | null) : null;
    const kept = text === null ? undefined : (JSON.parse(text) as Kept);
    if (!kept || this.#now() >= kept.expires_at)
      throw kernelProblem('unauthenticated', {
        detail: 'The ticket is unknown, was used, or is older than 30 seconds. Ask for a new one.',
      });
    const live = await this.#live(kept.caller);
    return { ...live, caller: kept.caller, scopes: new Set(gates.filter(scope => live.scopes.has(scope))) };
  }

  /** A ticket opens the door it was minted for and no other; the store never sees the ticket itself (G-K-03). */
  #key(door: string, ticket: string): string {
    return `ticket:${this.#service}:${door}:${createHash('sha256').update(ticket).digest('base64url')}`;
  }
}
