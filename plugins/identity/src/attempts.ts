import type { Ctx } from './context.ts';

const MINUTE_S = 60;
const PER_ACCOUNT_AND_IP = 10;
const PER_IP = 60;
const CODES_PER_PERSON = 10;
const TOKENS_PER_CLIENT = 600;
const FAILURES = 10;
const LOCK_S = 900;

interface Batch {
  count: number;
  sent: boolean;
  total: Promise<number>;
}

/**
 * Brakes on guessing: per address and account, per address, and a soft lock after ten failures (G-K-19). A try counts as failed before the
 * password is looked at, so that guesses in parallel are counted too. Unknown accounts count like known ones. Without the store nobody signs in.
 */
export class Attempts {
  readonly #ctx: Ctx;
  readonly #batches = new Map<string, Batch>();

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async admit(account: string, ip: string): Promise<void> {
    const now = Math.floor(this.#ctx.clock.now().getTime() / 1_000);
    const minute = Math.floor(now / MINUTE_S);
    const source = network(ip);
    const [, own, , address] = await this.#pipeline([...counted(`auth:try:${minute}:${source}:${account}`, MINUTE_S), ...counted(`auth:try:${minute}:${source}`, MINUTE_S)]);
    const worst = Math.max(Number(own) - PER_ACCOUNT_AND_IP, Number(address) - PER_IP);
    if (worst > 0) {
      const wait = String(MINUTE_S - (now % MINUTE_S));
      const limit = Number(own) > PER_ACCOUNT_AND_IP ? PER_ACCOUNT_AND_IP : PER_IP;
      throw this.#ctx.problem('rate_limited', {
        detail: `Try again in ${wait} seconds.`,
        headers: { 'retry-after': wait, ratelimit: `"sign-in";r=0;t=${wait}`, 'ratelimit-policy': `"sign-in";q=${limit};w=${MINUTE_S}` },
      });
    }
    const failed = `auth:failed:${account}`;
    const [, failures] = await this.#pipeline(counted(failed, LOCK_S));
    if (Number(failures) > FAILURES) {
      const [left] = await this.#pipeline([['TTL', failed]]);
      throw this.#ctx.problem('account_locked', { detail: 'Try again in 15 minutes.', headers: { 'retry-after': String(Math.max(1, Number(left))) } });
    }
    // The lock runs from the last failure that was still counted; knocking on a locked door does not prolong it.
    await this.#pipeline([['EXPIRE', failed, LOCK_S]]);
  }

  /** The token endpoint's own brake, per client. Requests that come while an answer is under way are counted together in the next round trip. */
  async token(workload: string): Promise<void> {
    const minute = Math.floor(this.#ctx.clock.now().getTime() / 60_000);
    const key = `auth:token:${minute}:${workload}`;
    const last = this.#batches.get(key);
    const batch = last && !last.sent ? last : this.#batch(key, last?.total);
    batch.count += 1;
    if ((await batch.total) > TOKENS_PER_CLIENT)
      throw this.#ctx.problem('rate_limited', { detail: `${workload} asked for more than ${TOKENS_PER_CLIENT} tokens in a minute.`, headers: { 'retry-after': '10' } });
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
    const now = Math.floor(this.#ctx.clock.now().getTime() / 1_000);
    const minute = Math.floor(now / MINUTE_S);
    const [, own, , address] = await this.#pipeline([...counted(`auth:code:${minute}:${userId}`, MINUTE_S), ...counted(`auth:code:${minute}:${network(ip)}`, MINUTE_S)]);
    if (Number(own) <= CODES_PER_PERSON && Number(address) <= PER_IP) return;
    const wait = String(MINUTE_S - (now % MINUTE_S));
    throw this.#ctx.problem('rate_limited', { detail: `Try again in ${wait} seconds.`, headers: { 'retry-after': wait } });
  }

  async succeeded(account: string): Promise<void> {
    await this.#pipeline([['DEL', `auth:failed:${account}`]]);
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

/** A counter that can never be left without an end. */
const counted = (key: string, seconds: number): (readonly (string | number)[])[] => [
  ['SET', key, 0, 'EX', seconds, 'NX'],
  ['INCR', key],
];

/** One household of IPv6 has more addresses than anybody can count: its /64 is what is counted. */
function network(ip: string): string {
  if (!ip.includes(':')) return ip;
  const [head = '', tail = ''] = ip.split('::');
  const left = head.split(':').filter(Boolean);
  const missing = 8 - left.length - tail.split(':').filter(Boolean).length;
  return [...left, ...Array.from({ length: ip.includes('::') ? missing : 0 }, () => '0'), ...tail.split(':').filter(Boolean)].slice(0, 4).join(':');
}
