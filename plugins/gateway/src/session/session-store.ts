import { createHash } from 'node:crypto';
import type { Sealed } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { replaceVersion } from './versioned-record.ts';

/** One session as it is stored (G-BFF-02). Tokens are inside `tokens_enc` and nowhere else. */
export interface SessionRecord {
  /** Shown to its owner; not the cookie. */
  readonly session_id: string;
  readonly session_id_hash: string;
  readonly user_id: string;
  readonly email: string;
  readonly display_name: string | null;
  readonly app_instance_id: string | null;
  readonly client_id: string;
  readonly issuer_host: string;
  readonly env_id: string;
  readonly auth_env: string;
  readonly scopes: readonly string[];
  readonly csrf_token: string;
  readonly tokens_enc: Sealed;
  /** Session at the identity service. */
  readonly sid: string;
  readonly created_at: string;
  readonly last_seen: string;
  readonly idle_expires_at: string;
  readonly absolute_expires_at: string;
  readonly user_agent: string;
  readonly ip_prefix: string;
  readonly version: number;
}

const SCAN_MAX = 1_000;
const REMOVE = `
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('SREM', KEYS[3], ARGV[1])
return redis.call('DEL', KEYS[1])`;

export const hashOf = (cookie: string): string => createHash('sha256').update(cookie).digest('hex');
export const sessionKey = (hash: string): string => `bff:session:${hash}`;
const userKey = (userId: string): string => `bff:user:${userId}`;
const identityKey = (sid: string): string => `bff:sid:${sid}`;

/**
 * Session records in the key-value store, with an index per person and per identity session. Life of a record: inserted → replaced* →
 * removed or expired.
 */
export class SessionStore {
  readonly #ctx: Pick<Ctx, 'kv' | 'clock'>;

  constructor(ctx: Pick<Ctx, 'kv' | 'clock'>) {
    this.#ctx = ctx;
  }

  async read(hash: string): Promise<SessionRecord | undefined> {
    return this.#parse(await this.#ctx.kv.call('GET', sessionKey(hash)));
  }

  async insert(record: SessionRecord): Promise<void> {
    const { session_id_hash: hash, user_id: userId, sid } = record;
    const absolute = Date.parse(record.absolute_expires_at);
    const answers = await this.#ctx.kv.pipeline([
      ['SET', sessionKey(hash), JSON.stringify(record), 'NX', 'PX', this.#ttl(record)],
      ['ZREMRANGEBYSCORE', userKey(userId), '-inf', this.#now()],
      ['ZADD', userKey(userId), absolute, hash],
      ['PEXPIREAT', userKey(userId), absolute],
      ['SADD', identityKey(sid), hash],
      ['PEXPIREAT', identityKey(sid), absolute],
    ]);
    for (const answer of answers) if (answer instanceof Error) throw answer;
  }

  /** Writes the successor of a version: `stale` when another write came first, `gone` when the session ended. */
  replace(record: SessionRecord): Promise<'written' | 'stale' | 'gone'> {
    return replaceVersion(this.#ctx.kv, sessionKey(record.session_id_hash), record, this.#ttl(record));
  }

  /** Whether this call was the one that removed it. */
  async remove({ session_id_hash: hash, user_id: userId, sid }: SessionRecord): Promise<boolean> {
    return Number(await this.#ctx.kv.call('EVAL', REMOVE, 3, sessionKey(hash), userKey(userId), identityKey(sid), hash)) === 1;
  }

  /** Sessions of a person, newest first, at most 1000 (GWY-032). */
  async ofUser(userId: string): Promise<SessionRecord[]> {
    const hashes = (await this.#ctx.kv.call('ZREVRANGE', userKey(userId), 0, SCAN_MAX - 1)) as string[];
    const records = await this.#readAll(hashes);
    const dead = hashes.filter((_, index) => records[index] === undefined);
    if (dead.length > 0) await this.#ctx.kv.call('ZREM', userKey(userId), ...dead);
    return records.filter(record => record !== undefined).sort((left, right) => right.created_at.localeCompare(left.created_at));
  }

  async ofIdentitySession(sid: string): Promise<SessionRecord[]> {
    const hashes = (await this.#ctx.kv.call('SMEMBERS', identityKey(sid))) as string[];
    return (await this.#readAll(hashes)).filter(record => record !== undefined);
  }

  /** Which of these sessions still exist. */
  async alive(hashes: readonly string[]): Promise<Set<string>> {
    const answers = await this.#ctx.kv.pipeline(hashes.map(hash => ['EXISTS', sessionKey(hash)]));
    for (const answer of answers) if (answer instanceof Error) throw answer;
    return new Set(hashes.filter((_, index) => Number(answers[index]) === 1));
  }

  async #readAll(hashes: readonly string[]): Promise<(SessionRecord | undefined)[]> {
    const answers = await this.#ctx.kv.pipeline(hashes.map(hash => ['GET', sessionKey(hash)]));
    for (const answer of answers) if (answer instanceof Error) throw answer;
    return answers.map(answer => this.#parse(answer));
  }

  #parse(value: unknown): SessionRecord | undefined {
    if (typeof value !== 'string') return undefined;
    const record = JSON.parse(value) as SessionRecord;
    return this.#expiry(record) > this.#now() ? record : undefined;
  }

  #ttl(record: SessionRecord): number {
    return Math.max(1, this.#expiry(record) - this.#now());
  }

  #expiry(record: SessionRecord): number {
    return Math.min(Date.parse(record.idle_expires_at), Date.parse(record.absolute_expires_at));
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }
}
