import type { SealedBox } from '@platform/sdk';
import type { Ctx } from '../context.ts';

const MINUTE_S = 60;
const PER_ACCOUNT_AND_IP = 10;
const PER_IP = 60;
const CODES_PER_PERSON = 10;
const TOKENS_PER_CLIENT = 600;
const REGISTRATIONS_PER_CLIENT = 20;
const FAILURES = 10;
const LOCK_S = 900;
const HOUR_S = 3_600;
const MAILS_PER_ACCOUNT = 5;
const MAILS_PER_IP = 20;

/** A counter that can never be left without an end. */
const COUNT = `
  local count = redis.call('INCR', KEYS[1])
  if count == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
  return count`;
/** The lock runs from the last failure that was still counted; knocking on a locked door does not prolong it. */
const COUNT_FAILURE = `
  local failures = redis.call('INCR', KEYS[1])
  if failures <= tonumber(ARGV[1]) then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
  return {failures, redis.call('TTL', KEYS[1])}`;
const TAKE_BACK = `if redis.call('DECR', KEYS[1]) <= 0 then redis.call('DEL', KEYS[1]) end`;

interface Batch {
  count: number;
  sent: boolean;
  total: Promise<number>;
}

/**
 * Brakes on guessing: per address and account, per address, and a soft lock after ten failures (G-K-19). A try counts as failed before the
 * password is looked at, so that guesses in parallel are counted too. Unknown accounts count like known ones. Without the store nobody
 * signs in.
 */
export class Attempts {
  readonly #ctx: Ctx;
  readonly #box: SealedBox;
  readonly #batches = new Map<string, Batch>();

  constructor(ctx: Ctx, box: SealedBox) {
    this.#ctx = ctx;
    this.#box = box;
  }

  /** What an address is counted by. Addresses of people are no names for keys. */
  account(envId: string, email: string): string {
    return this.#name('account', `${envId} ${email.trim().toLowerCase()}`);
  }
  /** The second factor is counted apart: a right password forgives nothing there. */
  secondFactor(userId: string): string {
    return this.#name('second-factor', userId);
  }

  /** @returns how many tries failed if this one does. */
  async admit(account: string, ip: string): Promise<number> {
    const failed = `auth:failed:${account}`;
    const now = this.#seconds();
    const [own, address, answer] = await this.#pipeline([...tries(ip, now, account), ['EVAL', COUNT_FAILURE, 1, failed, FAILURES, LOCK_S]]);
    const refused = this.#tooFast(own, address, now);
    if (refused) {
      // Whoever is turned away for haste has tried nothing, and locks nobody out.
      await this.#pipeline([['EVAL', TAKE_BACK, 1, failed]]);
      throw refused;
    }
    const [failures = 0, left = 0] = answer as number[];
    if (failures > FAILURES)
      throw this.#ctx.problem('account_locked', {
        detail: 'Try again in 15 minutes.',
        headers: { 'retry-after': String(Math.max(1, left)) },
      });
    return failures;
  }

  /** So many tries a minute, whatever becomes of them; those that name no account are counted by where they come from alone. */
  async slow(account: string | undefined, ip: string): Promise<void> {
    const now = this.#seconds();
    const counts = await this.#pipeline(tries(ip, now, account));
    const refused = this.#tooFast(account && counts[0], counts.at(-1), now);
    if (refused) throw refused;
  }

  /**
   * G-K-19: an address gets so many mails an hour and then none, without a word; who asks too often is told. Applications ask for many
   * people from one place.
   */
  async mayMail(kind: string, account: string, ip?: string): Promise<boolean> {
    const now = this.#seconds();
    const hour = Math.floor(now / HOUR_S);
    const source = ip === undefined ? [] : [counted(`auth:mail:${hour}:${network(ip)}`, HOUR_S)];
    const [own, address] = await this.#pipeline([counted(`auth:mail:${hour}:${kind}:${account}`, HOUR_S), ...source]);
    if (Number(address ?? 0) > MAILS_PER_IP) throw this.#tooMany('mail', MAILS_PER_IP, HOUR_S, now);
    return Number(own) <= MAILS_PER_ACCOUNT;
  }

  /** Clients that one workload registers a minute (G-K-19). */
  async register(workload: string): Promise<void> {
    const now = this.#seconds();
    const [count] = await this.#pipeline([counted(`auth:try:${Math.floor(now / MINUTE_S)}:register:${workload}`, MINUTE_S)]);
    if (Number(count) > REGISTRATIONS_PER_CLIENT) throw this.#tooMany('registration', REGISTRATIONS_PER_CLIENT, MINUTE_S, now);
  }

  /** Which of these accounts are locked at the moment. Nobody is, as far as anybody can tell, while the store is away. */
  async locked(accounts: readonly string[]): Promise<readonly boolean[]> {
    if (accounts.length === 0) return [];
    const counts = await this.#ctx.kv
      .pipeline(accounts.map(account => ['GET', `auth:failed:${account}`]))
      .catch(() => accounts.map(() => 0));
    return counts.map(count => Number(count) >= FAILURES);
  }

  /**
   * The token endpoint's own brake, per client (G-K-19). Requests that come while an answer is under way are counted together in the next
   * round trip.
   */
  async token(client: string): Promise<void> {
    if ((await this.#counted(client)) > TOKENS_PER_CLIENT) throw this.#tooManyTokens();
  }

  /** The same for a client that has yet to prove itself: a stranger who names it uses nothing up. What it gets is {@link issued}. */
  async mayAsk(client: string): Promise<void> {
    const [count] = await this.#pipeline([['GET', this.#tokens(client)]]);
    if (Number(count) >= TOKENS_PER_CLIENT) throw this.#tooManyTokens();
  }

  /** Never fails: what was given is given. */
  async issued(client: string): Promise<void> {
    await this.#counted(client).catch(error => this.#ctx.log.warn({ err: error }, 'a token was not counted'));
  }

  /** Once for every lock, at the failure that closed the door; for an address without an account too, or the work would tell. */
  async recordLock(failures: number, action: string, envId: string, userId: string | undefined): Promise<void> {
    if (failures !== FAILURES) return;
    await this.#ctx.db.tx(tx =>
      tx.audit({ action, envId, outcome: 'denied', ...(userId ? { resource: { type: 'user', id: userId } } : {}), details: { failures } }),
    );
  }

  #counted(client: string): Promise<number> {
    const key = this.#tokens(client);
    const last = this.#batches.get(key);
    const batch = last && !last.sent ? last : this.#batch(key, last?.total);
    batch.count += 1;
    return batch.total;
  }

  #tokens(client: string): string {
    return `auth:token:${Math.floor(this.#seconds() / MINUTE_S)}:${client}`;
  }

  #tooManyTokens() {
    return this.#ctx.problem('rate_limited', {
      detail: `The client had its ${TOKENS_PER_CLIENT} tokens of this minute.`,
      headers: { 'retry-after': '10' },
    });
  }

  #batch(key: string, before: Promise<unknown> | undefined): Batch {
    const batch: Batch = { count: 0, sent: false, total: Promise.resolve(0) };
    const send = async () => {
      await before?.catch(() => undefined);
      batch.sent = true;
      const [, count] = await this.#pipeline([
        ['SET', key, 0, 'EX', MINUTE_S, 'NX'],
        ['INCRBY', key, batch.count],
      ]);
      return Number(count);
    };
    this.#batches.set(key, batch);
    batch.total = send().finally(() => {
      if (this.#batches.get(key) === batch) this.#batches.delete(key);
    });
    return batch;
  }

  /** User codes are short: per person and per address, so few are tried that none is guessed (RFC 8628 5.1). */
  async userCode(userId: string, ip: string): Promise<void> {
    const now = this.#seconds();
    const minute = Math.floor(now / MINUTE_S);
    const [own, address] = await this.#pipeline([
      counted(`auth:code:${minute}:${userId}`, MINUTE_S),
      counted(`auth:code:${minute}:${network(ip)}`, MINUTE_S),
    ]);
    if (Number(own) <= CODES_PER_PERSON && Number(address) <= PER_IP) return;
    throw this.#tooMany('user-code', Number(own) > CODES_PER_PERSON ? CODES_PER_PERSON : PER_IP, MINUTE_S, now);
  }

  async succeeded(account: string): Promise<void> {
    await this.#pipeline([['DEL', `auth:failed:${account}`]]);
  }

  #tooFast(own: unknown, address: unknown, now: number) {
    const limit = Number(own ?? 0) > PER_ACCOUNT_AND_IP ? PER_ACCOUNT_AND_IP : Number(address) > PER_IP ? PER_IP : undefined;
    return limit === undefined ? undefined : this.#tooMany('sign-in', limit, MINUTE_S, now);
  }

  #name(kind: string, value: string): string {
    return this.#box.fingerprint(kind, value).slice(0, 22);
  }

  #tooMany(policy: string, limit: number, window: number, now: number) {
    const wait = String(window - (now % window));
    return this.#ctx.problem('rate_limited', {
      detail: `Try again in ${wait} seconds.`,
      headers: { 'retry-after': wait, ratelimit: `"${policy}";r=0;t=${wait}`, 'ratelimit-policy': `"${policy}";q=${limit};w=${window}` },
    });
  }

  #seconds(): number {
    return Math.floor(this.#ctx.clock.now().getTime() / 1_000);
  }

  async #pipeline(commands: readonly (readonly (string | number)[])[]): Promise<unknown[]> {
    const away = (cause: unknown) => this.#ctx.problem('store_away', { cause, headers: { 'retry-after': '2' } });
    const answers = await this.#ctx.kv.pipeline(commands).catch(cause => {
      throw away(cause);
    });
    for (const answer of answers) if (answer instanceof Error) throw away(answer);
    return answers;
  }
}

const counted = (key: string, seconds: number): readonly (string | number)[] => ['EVAL', COUNT, 1, key, seconds];

/** Counts a try by account and address where there is an account, and by address. */
function tries(ip: string, now: number, account: string | undefined) {
  const source = `auth:try:${Math.floor(now / MINUTE_S)}:${network(ip)}`;
  return [...(account ? [counted(`${source}:${account}`, MINUTE_S)] : []), counted(source, MINUTE_S)];
}

/** One household of IPv6 has more addresses than anybody can count: its /64 is what is counted. */
function network(ip: string): string {
  if (!ip.includes(':')) return ip;
  const [head = '', tail = ''] = ip.split('::');
  const left = head.split(':').filter(Boolean);
  const missing = 8 - left.length - tail.split(':').filter(Boolean).length;
  return [...left, ...Array.from({ length: ip.includes('::') ? missing : 0 }, () => '0'), ...tail.split(':').filter(Boolean)]
    .slice(0, 4)
    .join(':');
}
