import { randomBytes } from 'node:crypto';
import type { SealedBox } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import type { Person } from '../people/person.ts';
import type { Protocol } from '../protocol/protocol.ts';
import { ProtocolTurn } from '../protocol/protocol-turn.ts';
import { sessionSeconds } from '../protocol/configuration/lifetimes.ts';
import { SESSION_COOKIE } from '../protocol/configuration/cookies.ts';
import type { Realm } from '../realms.ts';
import { cookieOf, type Headers, pageCookie } from './request-cookies.ts';

interface Opened {
  readonly sid: string;
  /** `session_token_id`: what the page sends back as x-platform-csrf. */
  readonly tokenId: string;
  readonly cookie: string;
  /** The session is there when this was written. */
  readonly turn: ProtocolTurn;
}

/** The sign-in session of one browser: an HttpOnly cookie of this service, which the protocol reads too (IDN-015). */
export class BrowserSession {
  readonly #ctx: Ctx;
  readonly #protocol: Protocol;
  readonly #box: SealedBox;

  constructor(ctx: Ctx, { protocol, box }: { protocol: Protocol; box: SealedBox }) {
    this.#ctx = ctx;
    this.#protocol = protocol;
    this.#box = box;
  }

  async current(realm: Realm, headers: Headers) {
    const id = cookieOf(headers, SESSION_COOKIE);
    const session = id ? await this.#protocol.provider(realm).Session.find(id) : undefined;
    return session?.accountId ? session : undefined;
  }

  /** Always a new id: whatever cookie the browser came with, nobody who planted it is signed in by it. */
  async open(realm: Realm, person: Person, headers: Headers, amr: string[]): Promise<Opened> {
    const turn = new ProtocolTurn(this.#ctx.db.sql, realm.env_id);
    return turn.run(async () => {
      const { Session } = this.#protocol.provider(realm);
      const before = await this.current(realm, headers);
      const session = new Session();
      session.uid = this.#ctx.platform.newId();
      session.jti = randomBytes(32).toString('base64url');
      session.loginAccount({ accountId: person.user_id, amr });
      const seconds = sessionSeconds(session.loginTs);
      await session.save(seconds);
      await before?.destroy();
      return { sid: session.uid, tokenId: this.tokenId(session.uid), cookie: sessionCookie(session.jti, seconds), turn };
    });
  }

  tokenId(sid: string): string {
    return this.#box.fingerprint('session-token', sid);
  }
}

const sessionCookie = (id: string, seconds: number) => pageCookie(SESSION_COOKIE, id, { sameSite: 'lax', maxAge: seconds });
export const clearedSession = sessionCookie('', 0);
