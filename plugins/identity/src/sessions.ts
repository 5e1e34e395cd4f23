import { createHash } from 'node:crypto';
import { type RequestOf, SYSTEM } from '@platform/sdk';
import type { Contract, Ctx, IdentityTx } from './context.ts';
import type { Person } from './people.ts';
import { SESSION_COOKIE } from './protocol.ts';
import type { Realm } from './realms.ts';
import { cookieOf } from './sign-in.ts';

type Reason = 'sign_out' | 'admin' | 'password_change' | 'reuse_detected' | 'expired';
/** Longer than any token that was issued under the session lives. */
const MARK_S = 3_600;

interface Row {
  readonly uid: string;
  readonly account_id: string;
  readonly email: string;
  readonly created_at: string;
  readonly expires_at: string;
}

/** Sign-in sessions: their list, and their end with the event in the same transaction and the mark that verifiers read. */
export class Sessions {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async list({ query, caller, targetEnvId }: RequestOf<Contract, 'listSessions'>) {
    const limit = query.limit ?? 50;
    const envId = targetEnvId ?? caller.envId ?? SYSTEM.envId;
    const rows = await this.#ctx.db.sql<Row[]>`
      select s.uid, s.account_id, u.email, s.created_at, s.expires_at from oidc_state s join users u on u.user_id::text = s.account_id
      where s.model = 'Session' and s.env_id = ${envId} and s.expires_at > now() and (${query.cursor ?? null}::text is null or s.uid < ${query.cursor ?? null})
      order by s.uid desc limit ${limit + 1}`;
    const items = rows.slice(0, limit).map(({ uid, account_id, email, created_at, expires_at }) => ({ session_id: uid, user_id: account_id, email, created_at, expires_at }));
    return { items, next_cursor: rows.length > limit ? (items.at(-1)?.session_id ?? null) : null };
  }

  async revoke({ params, caller, targetEnvId }: RequestOf<Contract, 'revokeSession'>): Promise<void> {
    const envId = targetEnvId ?? caller.envId ?? SYSTEM.envId;
    const sids = await this.#ctx.db.tx(async tx => {
      const ended = await this.#end(tx, envId, { uid: params.session_id }, 'admin');
      if (ended.length > 0) await tx.audit({ action: 'auth.session.revoked', envId, caller, resource: { type: 'session', id: params.session_id } });
      return ended;
    });
    if (sids.length === 0) throw this.#ctx.problem('session_not_found');
    await this.#mark(sids);
  }

  /** The browser's own session, by its cookie. Nothing to end is fine. */
  async endOf(realm: Realm, headers: Readonly<Record<string, string | undefined>>): Promise<void> {
    const id = cookieOf(headers, SESSION_COOKIE);
    if (!id) return;
    const sids = await this.#ctx.db.tx(tx => this.#end(tx, realm.env_id, { hash: createHash('sha256').update(id).digest() }, 'sign_out'));
    await this.#mark(sids);
  }

  /** Every session of a person, in the caller's transaction; the marks follow at once. */
  async endAllIn(tx: IdentityTx, person: Person, reason: Reason): Promise<void> {
    await this.#mark(await this.#end(tx, person.env_id, { account: person.user_id }, reason));
  }

  /** A store that came back empty must not forgive a revoked session. */
  async publish(): Promise<void> {
    const rows = await this.#ctx.db.sql<{ kind: string; value: string; ttl: number }[]>`select kind, value, ceil(extract(epoch from expires_at - now()))::int as ttl from revocations where expires_at > now() limit 100000`;
    if (rows.length > 0) await this.#ctx.kv.pipeline(rows.map(({ kind, value, ttl }) => ['SET', `revoked:${kind}:${value}`, '1', 'EX', Math.max(1, ttl)]));
  }

  async #end(tx: IdentityTx, envId: string, which: { uid?: string; hash?: Buffer; account?: string }, reason: Reason): Promise<string[]> {
    const rows = await tx.sql<{ uid: string; account_id: string | null }[]>`
      delete from oidc_state where model = 'Session' and env_id = ${envId}
        and (${which.uid ?? null}::text is null or uid = ${which.uid ?? null})
        and (${which.hash ?? null}::bytea is null or id_hash = ${which.hash ?? null}::bytea)
        and (${which.account ?? null}::text is null or account_id = ${which.account ?? null})
      returning uid, account_id`;
    const at = this.#ctx.clock.now();
    for (const { uid, account_id: userId } of rows) {
      if (!userId) continue;
      await tx.sql`insert into revocations (kind, value, expires_at) values ('sid', ${uid}, ${new Date(at.getTime() + MARK_S * 1_000).toISOString()}) on conflict do nothing`;
      await tx.emit('platform:auth:session:revoked', envId, { session_id: uid, user_id: userId, env_id: envId, reason, revoked_at: at.toISOString() });
    }
    return rows.map(({ uid }) => uid);
  }

  async #mark(sids: readonly string[]): Promise<void> {
    if (sids.length === 0) return;
    for (const answer of await this.#ctx.kv.pipeline(sids.map(sid => ['SET', `revoked:sid:${sid}`, '1', 'EX', MARK_S]))) if (answer instanceof Error) throw answer;
  }
}
