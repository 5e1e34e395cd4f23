import type { RawExchange } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { pkceCookie } from './cookies.ts';
import { json, type Methods, visitOf } from '../door.ts';
import type { Guard } from './guard.ts';
import type { LiveAccess } from '../live/live-access.ts';
import type { SessionRecord } from './session-store.ts';
import type { Sessions } from './sessions.ts';
import type { SignIn } from './sign-in.ts';

/** What a browser may know of its session and of its person's other ones: never a token (G-BFF-03). */
export class SessionEndpoints {
  readonly #ctx: Ctx;
  readonly #guard: Guard;
  readonly #sessions: Sessions;
  readonly #access: LiveAccess;
  readonly #signIn: SignIn;

  constructor(ctx: Ctx, { guard, sessions, access, signIn }: { guard: Guard; sessions: Sessions; access: LiveAccess; signIn: SignIn }) {
    this.#ctx = ctx;
    this.#guard = guard;
    this.#sessions = sessions;
    this.#access = access;
    this.#signIn = signIn;
  }

  readonly session: Methods = {
    GET: async exchange => json(await this.#describe(await this.#guard.session(visitOf(exchange)))),
  };

  readonly refresh: Methods = {
    POST: async exchange => {
      const session = await this.#guard.mutation(visitOf(exchange), 'origin');
      return json(await this.#describe(await this.#sessions.refresh(session)));
    },
  };

  readonly signOut: Methods = {
    POST: async (exchange, extra) => {
      const visit = visitOf(exchange);
      const session = await this.#guard.mutation(visit, 'origin');
      const everywhere = this.#everywhere(await exchange.json({ of: 'any' }));
      extra.append('set-cookie', this.#signIn.clearing(visit));
      extra.append('set-cookie', pkceCookie(''));
      await this.#sessions.signOut(session, { everywhere });
      return new Response(null, { status: 204 });
    },
  };

  readonly all: Methods = {
    GET: async exchange => {
      const session = await this.#guard.session(visitOf(exchange));
      return json({ items: (await this.#sessions.store.ofUser(session.user_id)).map(other => item(other, session)) });
    },
    DELETE: async exchange => {
      const session = await this.#guard.mutation(visitOf(exchange), 'csrf');
      const others = (await this.#sessions.store.ofUser(session.user_id)).filter(({ session_id }) => session_id !== session.session_id);
      await Promise.all(others.map(other => this.#sessions.end(other, 'ended_by_owner', { revoke: true })));
      return json({ revoked: others.length });
    },
  };

  readonly one: Methods = {
    GET: async exchange => {
      const session = await this.#guard.session(visitOf(exchange));
      const other = await this.#own(session, exchange);
      return json({
        ...item(other, session),
        user_agent: other.user_agent,
        ip_prefix: other.ip_prefix,
        expires_at: this.#sessions.expiresAt(other),
        app_instance_id: other.app_instance_id,
      });
    },
    DELETE: async (exchange, extra) => {
      const visit = visitOf(exchange);
      const session = await this.#guard.mutation(visit, 'csrf');
      const other = await this.#own(session, exchange);
      if (other.session_id === session.session_id) extra.append('set-cookie', this.#signIn.clearing(visit));
      await this.#sessions.end(other, 'ended_by_owner', { revoke: true });
      return new Response(null, { status: 204 });
    },
  };

  #everywhere(body: unknown): boolean {
    const { everywhere = false, ...unknown } = (typeof body === 'object' && body !== null ? body : { '': body }) as Record<string, unknown>;
    if (body === undefined) return false;
    if (typeof everywhere !== 'boolean' || Object.keys(unknown).length > 0)
      throw this.#ctx.problem('malformed', { detail: 'Send nothing, or { everywhere?: boolean }.' });
    return everywhere;
  }

  async #own(session: SessionRecord, { params }: RawExchange): Promise<SessionRecord> {
    const found = (await this.#sessions.store.ofUser(session.user_id)).find(({ session_id }) => session_id === params['id']);
    if (!found) throw this.#ctx.problem('session_not_found');
    return found;
  }

  async #describe(session: SessionRecord) {
    const [scopes, orgId] = await Promise.all([
      this.#access.scopes(session).catch(() => session.scopes),
      this.#access.orgOf(session.env_id).catch(() => undefined),
    ]);
    return {
      user: { user_id: session.user_id, email: session.email, display_name: session.display_name },
      scopes,
      org_id: orgId ?? null,
      env_id: session.env_id,
      csrf_token: session.csrf_token,
      expires_at: this.#sessions.expiresAt(session),
    };
  }
}

function item(session: SessionRecord, current: SessionRecord) {
  return {
    session_id: session.session_id,
    created_at: session.created_at,
    last_seen: session.last_seen,
    current: session.session_id === current.session_id,
  };
}
