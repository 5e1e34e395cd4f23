import { timingSafeEqual } from 'node:crypto';
import type { Ctx } from './context.ts';
import type { Realm, Realms } from './realms.ts';
import type { SealedBox } from './sealed-box.ts';

/** Keeps other sites from driving a person's sign-in: the page's own token where it has one, its exact origin otherwise (G-AUTH-07). */
export class PageGuard {
  readonly #ctx: Ctx;
  readonly #realms: Realms;
  readonly #box: SealedBox;

  constructor(ctx: Ctx, realms: Realms, box: SealedBox) {
    this.#ctx = ctx;
    this.#realms = realms;
    this.#box = box;
  }

  require(realm: Realm, headers: Readonly<Record<string, string | undefined>>, uid: string | undefined): void {
    const shown = headers['x-platform-csrf'];
    if (shown !== undefined) {
      const expected = Buffer.from(this.tokenId(uid ?? ''));
      const given = Buffer.from(shown);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw this.#ctx.problem('csrf_mismatch', { detail: 'Reload the page and try again.' });
      return;
    }
    // Every *.localhost host is same-site with every other: only the exact origin says that this page sent it.
    if (headers['origin'] !== this.#realms.issuer(realm)) throw this.#ctx.problem('bad_origin', { detail: 'Open the sign-in page itself.' });
  }

  /** `session_token_id`: bound to one sign-in, held in the page's memory only. */
  tokenId(uid: string): string {
    return this.#box.fingerprint('page', uid);
  }
}
