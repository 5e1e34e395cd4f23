import type { Ctx } from './context.ts';

const MINUTE_S = 60;
const PER_ACCOUNT_AND_IP = 10;
const PER_IP = 60;
const FAILURES = 10;
const LOCK_S = 900;

/** Brakes on guessing: per address and account, per address, and a soft lock after ten failures (G-K-19). Without the store nobody signs in. */
export class Attempts {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async admit(account: string, ip: string): Promise<void> {
    const minute = Math.floor(this.#ctx.clock.now().getTime() / 60_000);
    const [own, , address, , failures] = await this.#pipeline([
      ['INCR', `auth:try:${minute}:${ip}:${account}`],
      ['EXPIRE', `auth:try:${minute}:${ip}:${account}`, MINUTE_S],
      ['INCR', `auth:try:${minute}:${ip}`],
      ['EXPIRE', `auth:try:${minute}:${ip}`, MINUTE_S],
      ['GET', `auth:failed:${account}`],
    ]);
    const wait = String(60 - (Math.floor(this.#ctx.clock.now().getTime() / 1_000) % 60));
    if (Number(own) > PER_ACCOUNT_AND_IP || Number(address) > PER_IP) throw this.#ctx.problem('rate_limited', { detail: `Try again in ${wait} seconds.`, headers: { 'retry-after': wait } });
    if (Number(failures) >= FAILURES) throw this.#ctx.problem('account_locked', { detail: 'Try again in 15 minutes.', headers: { 'retry-after': String(LOCK_S) } });
  }

  async failed(account: string): Promise<void> {
    await this.#pipeline([['INCR', `auth:failed:${account}`], ['EXPIRE', `auth:failed:${account}`, LOCK_S]]);
  }

  async succeeded(account: string): Promise<void> {
    await this.#pipeline([['DEL', `auth:failed:${account}`]]);
  }

  async #pipeline(commands: readonly (readonly (string | number)[])[]): Promise<unknown[]> {
    const answers = await this.#ctx.kv.pipeline(commands);
    for (const answer of answers) if (answer instanceof Error) throw answer;
    return answers;
  }
}
