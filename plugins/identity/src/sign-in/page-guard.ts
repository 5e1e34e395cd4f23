import { timingSafeEqual } from 'node:crypto';
import type { BrowserSession } from './browser-session.ts';
import type { Headers } from './request-cookies.ts';
import type { Ctx } from '../context.ts';
import type { Realm, Realms } from '../realms.ts';

/**
 * Keeps other sites from driving a person's sign-in: the session's own token where the page has it, its exact origin otherwise (G-AUTH-07).
 */
export class PageGuard {
  readonly #ctx: Ctx;
  readonly #realms: Realms;
  readonly #browser: BrowserSession;

  constructor(ctx: Ctx, { realms, browser }: { realms: Realms; browser: BrowserSession }) {
    this.#ctx = ctx;
    this.#realms = realms;
    this.#browser = browser;
  }

  async require(realm: Realm, headers: Headers): Promise<void> {
    const shown = headers['x-platform-csrf'];
    if (shown !== undefined) {
      const session = await this.#browser.current(realm, headers);
      const expected = Buffer.from(session ? this.#browser.tokenId(session.uid) : '');
      const given = Buffer.from(shown);
      if (!session || given.length !== expected.length || !timingSafeEqual(given, expected))
        throw this.#ctx.problem('csrf_mismatch', { detail: 'Reload the page and try again.' });
    }
    // Every *.localhost host is same-site with every other: only the exact origin says that this page sent it (H-07).
    else if (headers['origin'] !== this.#realms.issuer(realm))
      throw this.#ctx.problem('bad_origin', { detail: 'Open the sign-in page itself.' });
  }
}
