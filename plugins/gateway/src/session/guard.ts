import { timingSafeEqual } from 'node:crypto';
import type { Apps, Visit } from '../apps/apps.ts';
import type { Ctx } from '../context.ts';
import { readCookie, SESSION_COOKIE } from './cookies.ts';
import type { SessionRecord } from './session-store.ts';
import type { Sessions } from './sessions.ts';

/** Who is asking, and whether this request is theirs: session, then application binding, then origin and token (GWY-051). */
export class Guard {
  readonly #ctx: Ctx;
  readonly #apps: Apps;
  readonly #sessions: Sessions;

  constructor(ctx: Ctx, { apps, sessions }: { apps: Apps; sessions: Sessions }) {
    this.#ctx = ctx;
    this.#apps = apps;
    this.#sessions = sessions;
  }

  /** The session of the cookie, bound to the application that was asked (D2); anything else is 401. */
  async session(visit: Visit): Promise<SessionRecord> {
    const session = await this.#sessions.find(readCookie(visit.header('cookie'), SESSION_COOKIE));
    if (!session) throw this.#ctx.problem('session_required');
    const instance = await this.#apps.instanceOf(visit);
    if ((session.app_instance_id ?? undefined) !== instance) throw this.#ctx.problem('app_binding_mismatch');
    return session;
  }

  /** The session of a request that changes something (`csrf`), or only ends or steers what is the caller's own (`origin`; C14). */
  async mutation(visit: Visit, kind: 'csrf' | 'origin'): Promise<SessionRecord> {
    const session = await this.session(visit);
    this.sameOrigin(visit);
    this.csrf(visit, session, kind === 'csrf');
    return session;
  }

  /** Hosts under one parent are all same-site: only the exact origin of the application says that its page is asking (H-07). */
  sameOrigin(visit: Visit): void {
    const origin = visit.header('origin');
    if (origin !== this.#apps.originOf(visit))
      throw this.#ctx.problem('origin_denied', { detail: origin ? `Not from ${origin.slice(0, 200)}.` : 'The request names no origin.' });
  }

  csrf(visit: Visit, session: SessionRecord, required: boolean): void {
    if (!this.#ctx.config.csrf) return;
    const given = visit.header('x-bff-csrf');
    if (given === undefined && !required) return;
    if (given === undefined || !same(given, session.csrf_token))
      throw this.#ctx.problem('csrf_mismatch', { detail: 'GET /auth/session names the right one.' });
  }
}

/** Compares without telling how much of it was right. */
export function same(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}
