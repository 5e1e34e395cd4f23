import { type Counted, type Limit, networkOf, type SealedBox } from '@platform/sdk';
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

/** The lock runs from the last failure that was still counted; knocking on a locked door does not prolong it. */
const COUNT_FAILURE = `
  local failures = redis.call('INCR', KEYS[1])
  if failures <= tonumber(ARGV[1]) then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
  return {failures, redis.call('TTL', KEYS[1])}`;
const TAKE_BACK = `if redis.call('DECR', KEYS[1]) <= 0 then redis.call('DEL', KEYS[1]) end`;

/** What is counted. */
type Counter = 'tries' | 'address' | 'mails' | 'mailsOfAddress' | 'registrations' | 'codes' | 'codesOfAddress' | 'tokens';

/**
 * Brakes on guessing: per address and account, per address, and a soft lock after ten failures (G-K-19). A try counts as failed before the
 * password is looked at, so that guesses in parallel are counted too. Unknown accounts count like known ones. Without the store nobody
 * signs in. The lock is no rate, and counted here: a success takes it back, and it runs from the last failure.
 */
export class Attempts {
  readonly #ctx: Ctx;
  readonly #box: SealedBox;
  readonly #limits: Readonly<Record<Counter, Limit>>;

  constructor(ctx: Ctx, box: SealedBox) {
    this.#ctx = ctx;
    this.#box = box;
    const limit = (name: string, max: number, seconds: number) => ctx.limit({ name, max, seconds, whenAway: 'refuse' });
    this.#limits = {
      tries: limit('sign-in', PER_ACCOUNT_AND_IP, MINUTE_S),
      address: limit('sign-in', PER_IP, MINUTE_S),
      mails: limit('mail', MAILS_PER_ACCOUNT, HOUR_S),
      mailsOfAddress: limit('mail', MAILS_PER_IP, HOUR_S),
      registrations: limit('registration', REGISTRATIONS_PER_CLIENT, MINUTE_S),
      codes: limit('user-code', CODES_PER_PERSON, MINUTE_S),
      codesOfAddress: limit('user-code', PER_IP, MINUTE_S),
      tokens: limit('token', TOKENS_PER_CLIENT, MINUTE_S),
    };
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
    const [counts, [answer]] = await Promise.all([
      this.#tries(account, ip),
      this.#pipeline([['EVAL', COUNT_FAILURE, 1, failed, FAILURES, LOCK_S]]),
    ]);
    const refused = counts.find(({ allowed }) => !allowed);
    if (refused) {
      // A caller that is turned away for haste has tried nothing, and locks nobody out.
      await this.#pipeline([['EVAL', TAKE_BACK, 1, failed]]);
      throw this.#tooMany(refused);
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
    this.#require(...(await this.#tries(account, ip)));
  }

  /**
   * G-K-19: an address gets so many mails an hour and then none, without a word; who asks too often is told. Applications ask for many
   * people from one place.
   */
  async mayMail(kind: string, account: string, ip?: string): Promise<boolean> {
    const [own, address] = await Promise.all([
      this.#taken('mails', `${kind}:${account}`),
      ip === undefined ? undefined : this.#taken('mailsOfAddress', networkOf(ip)),
    ]);
    if (address) this.#require(address);
    return own.allowed;
  }

  /** Clients that one workload registers a minute (G-K-19). */
  async register(workload: string): Promise<void> {
    this.#require(await this.#taken('registrations', workload));
  }

  /** Which of these accounts are locked at the moment. Nobody is, as far as anybody can tell, while the store is away. */
  async locked(accounts: readonly string[]): Promise<readonly boolean[]> {
    if (accounts.length === 0) return [];
    const counts = await this.#ctx.kv
      .pipeline(accounts.map(account => ['GET', `auth:failed:${account}`]))
      .catch(() => accounts.map(() => 0));
    return counts.map(count => Number(count) >= FAILURES);
  }

  /** The token endpoint's own brake, per client (G-K-19). */
  async token(client: string): Promise<void> {
    if (!(await this.#taken('tokens', client)).allowed) throw this.#tooManyTokens();
  }

  /** The same for a client that has yet to prove itself: a stranger who names it uses nothing up. What it gets is {@link issued}. */
  async mayAsk(client: string): Promise<void> {
    if ((await this.#taken('tokens', client, 0)).left === 0) throw this.#tooManyTokens();
  }

  /** Never fails: what was given is given. */
  async issued(client: string): Promise<void> {
    await this.#taken('tokens', client).catch(error => this.#ctx.log.warn({ err: error }, 'a token was not counted'));
  }

  /** Once for every lock, at the failure that closed the door; for an address without an account too, or the work would tell. */
  async recordLock(failures: number, action: string, envId: string, userId: string | undefined): Promise<void> {
    if (failures !== FAILURES) return;
    await this.#ctx.db.tx(tx =>
      tx.audit({ action, envId, outcome: 'denied', ...(userId ? { resource: { type: 'user', id: userId } } : {}), details: { failures } }),
    );
  }

  #tooManyTokens() {
    return this.#ctx.problem('rate_limited', {
      detail: `The client had its ${TOKENS_PER_CLIENT} tokens of this minute.`,
      headers: { 'retry-after': '10' },
    });
  }

  /** User codes are short: per person and per address, so few are tried that none is guessed (RFC 8628 5.1). */
  async userCode(userId: string, ip: string): Promise<void> {
    this.#require(...(await Promise.all([this.#taken('codes', userId), this.#taken('codesOfAddress', networkOf(ip))])));
  }

  async succeeded(account: string): Promise<void> {
    await this.#pipeline([['DEL', `auth:failed:${account}`]]);
  }

  /** Counts a try by account and address where there is an account, and by address. */
  #tries(account: string | undefined, ip: string): Promise<Counted[]> {
    const source = networkOf(ip);
    return Promise.all([...(account ? [this.#taken('tries', `${source}:${account}`)] : []), this.#taken('address', source)]);
  }

  #require(...counts: readonly Counted[]): void {
    const refused = counts.find(({ allowed }) => !allowed);
    if (refused) throw this.#tooMany(refused);
  }

  async #taken(limit: Counter, key: string, cost = 1): Promise<Counted> {
    return this.#limits[limit].take(key, cost).catch(cause => {
      throw this.#away(cause);
    });
  }

  #name(kind: string, value: string): string {
    return this.#box.fingerprint(kind, value).slice(0, 22);
  }

  #tooMany({ retryAfterSeconds, headers }: Counted) {
    return this.#ctx.problem('rate_limited', { detail: `Try again in ${retryAfterSeconds} seconds.`, headers });
  }

  #away(cause: unknown) {
    return this.#ctx.problem('store_away', { cause, headers: { 'retry-after': '2' } });
  }

  async #pipeline(commands: readonly (readonly (string | number)[])[]): Promise<unknown[]> {
    const answers = await this.#ctx.kv.pipeline(commands).catch(cause => {
      throw this.#away(cause);
    });
    for (const answer of answers) if (answer instanceof Error) throw this.#away(answer);
    return answers;
  }
}
