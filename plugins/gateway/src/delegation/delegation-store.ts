import type { Sealed } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { replaceVersion } from '../session/versioned-record.ts';

/** Decided by the customer, by the clock, or by an identity service that refuses. */
export type Outcome = 'approved' | 'denied' | 'expired' | 'failed';

/**
 * One request to act for a customer (G-BFF-07). Its secrets, the request id and the key first of all, are sealed. Life: started → approved
 * | denied | expired | failed.
 */
export interface DelegationRecord {
  readonly delegation_id: string;
  readonly staff_session_id: string;
  readonly staff_session_hash: string;
  readonly staff_user_id: string;
  readonly customer: { readonly env_id: string; readonly login_hint: string; readonly user_id: string | null };
  readonly issuer_host: string;
  readonly auth_req_enc: Sealed;
  readonly dpop_key_enc: Sealed;
  readonly jkt: string;
  readonly token_enc: Sealed | null;
  readonly token_expires_at: string | null;
  readonly scope: string;
  readonly binding_message: string | null;
  readonly interval: number;
  readonly polls: number;
  readonly expires_at: string;
  readonly state: 'started' | Outcome;
  readonly created_at: string;
  readonly decided_at: string | null;
  readonly version: number;
}

const DUE = 'bff:delegations:due';
/** What was decided, or ran out, can still be asked for this long. */
const AFTERLIFE_MS = 300_000;
const CLAIM = `
local due = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not due or tonumber(due) > tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
return 1`;
const key = (id: string): string => `bff:delegation:${id}`;

/** Delegations in the key-value store, and when each is to be asked about next: any process may ask, one at a time does. */
export class DelegationStore {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async read(id: string): Promise<DelegationRecord | undefined> {
    const text = await this.#ctx.kv.call('GET', key(id));
    return typeof text === 'string' ? (JSON.parse(text) as DelegationRecord) : undefined;
  }

  async insert(record: DelegationRecord): Promise<void> {
    const { delegation_id: id, interval } = record;
    const answers = await this.#ctx.kv.pipeline([
      ['SET', key(id), JSON.stringify(record), 'NX', 'PX', this.#ttl(record)],
      ['ZADD', DUE, this.#now() + interval * 1_000, id],
    ]);
    for (const answer of answers) if (answer instanceof Error) throw answer;
  }

  replace(record: DelegationRecord): Promise<'written' | 'stale' | 'gone'> {
    return replaceVersion(this.#ctx.kv, key(record.delegation_id), record, this.#ttl(record));
  }

  /** Ids whose interval has passed, the longest waiting first. */
  async due(limit: number): Promise<readonly string[]> {
    return (await this.#ctx.kv.call('ZRANGEBYSCORE', DUE, '-inf', this.#now(), 'LIMIT', 0, limit)) as string[];
  }

  /** Whether the caller is the one that may ask now; nobody else may before the interval has passed again. */
  async claim({ delegation_id: id, interval }: DelegationRecord): Promise<boolean> {
    return Number(await this.#ctx.kv.call('EVAL', CLAIM, 1, DUE, id, this.#now(), this.#now() + interval * 1_000)) === 1;
  }

  /** The next question comes an interval from now, not earlier. */
  async putOff({ delegation_id: id, interval }: DelegationRecord): Promise<void> {
    await this.#ctx.kv.call('ZADD', DUE, 'XX', this.#now() + interval * 1_000, id);
  }

  /** Nothing is left to ask. */
  async settle(id: string): Promise<void> {
    await this.#ctx.kv.call('ZREM', DUE, id);
  }

  #ttl({ expires_at: expires, token_expires_at: token }: DelegationRecord): number {
    return Math.max(Date.parse(expires), token === null ? 0 : Date.parse(token)) - this.#now() + AFTERLIFE_MS;
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }
}
