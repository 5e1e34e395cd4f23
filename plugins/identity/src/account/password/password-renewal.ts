import type { Ctx } from '../../context.ts';
import type { Passwords } from '../../people/passwords.ts';
import type { PersonWithPassword } from '../../people/person.ts';

/**
 * Passwords whose hashes were made when guessing cost less are hashed anew: only at a sign-in is the password at hand. Nobody waits for it,
 * and what does not succeed, or finds another renewal under way, is done at the next sign-in.
 */
export class PasswordRenewal implements AsyncDisposable {
  readonly #ctx: Ctx;
  readonly #passwords: Passwords;
  #underWay: Promise<void> | undefined;

  constructor(ctx: Ctx, passwords: Passwords) {
    this.#ctx = ctx;
    this.#passwords = passwords;
  }

  /** After the password was found right. Never throws. */
  begin({ user_id: userId, hash }: PersonWithPassword, password: string): void {
    // One at a time: after a rise of the cost everybody comes with an old hash, and most of the machine is for those who wait.
    if (hash === null || this.#underWay || !this.#passwords.isCheap(hash)) return;
    this.#underWay = this.#renew(userId, hash, password)
      .catch(error => this.#ctx.log.warn({ err: error, user_id: userId }, 'a password keeps its old hash until the next sign-in'))
      .finally(() => {
        this.#underWay = undefined;
      });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#underWay;
  }

  async #renew(userId: string, shown: string, password: string): Promise<void> {
    const hash = await this.#passwords.hashAside(password);
    // `changed_at` stays: the password is the same. Where it was changed meanwhile, this one is nobody's any more.
    if (hash !== undefined) await this.#ctx.db.sql`update passwords set hash = ${hash} where user_id = ${userId} and hash = ${shown}`;
  }
}
