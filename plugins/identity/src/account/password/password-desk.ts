import type { Ctx } from '../../context.ts';
import { HashingBusy, type Passwords } from '../../people/passwords.ts';

/** Passwords as requests meet them: refused with a reason for the field, and 503 rather than a queue without end. */
export class PasswordDesk {
  readonly #ctx: Ctx;
  readonly #passwords: Passwords;

  constructor(ctx: Ctx, passwords: Passwords) {
    this.#ctx = ctx;
    this.#passwords = passwords;
  }

  /** Throws `weak_password`. */
  require(password: string, email: string): void {
    const weakness = this.#passwords.weakness(password, email);
    if (weakness) throw this.refused('weak', weakness);
  }

  refused(code: string, message: string) {
    return this.#ctx.problem('weak_password', { detail: message, extra: { errors: [{ pointer: '/password', code, message }] } });
  }

  verify(stored: string | null | undefined, password: string): Promise<boolean> {
    return this.#hashing(() => this.#passwords.verify(stored, password));
  }

  hash(password: string): Promise<string> {
    return this.#hashing(() => this.#passwords.hash(password));
  }

  async #hashing<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof HashingBusy)
        throw this.#ctx.problem('busy', { detail: 'Try again in a moment.', headers: { 'retry-after': '2' } });
      throw error;
    }
  }
}
