import type { RequestOf } from '@platform/sdk';
import type { Contract, Ctx, IdentityTx } from '../context.ts';
import type { Person } from '../people/person.ts';

export type EndReason = 'sign_out' | 'admin' | 'password_change' | 'reuse_detected' | 'expired';
/** Longer than any token lives that was issued under the session and cannot be taken back. */
const MARK_S = 3_600;
/** Told in one round trip. */
const PER_PASS = 5_000;
/** What ends with a session. */
const ENDED = ['Session', 'RefreshToken', 'AuthorizationCode', 'DeviceCode', 'BackchannelAuthenticationRequest'];
/** Gone when the key-value store has lost its memory. */
const PUBLISHED = 'auth:revocations:published';

interface Row {
  readonly uid: string;
  readonly account_id: string;
  readonly email: string;
  readonly created_at: string;
  readonly expires_at: string;
}
interface OwnSession {
  readonly session_id: string;
  readonly device: string | null;
  readonly created_at: string;
  readonly last_seen_at: string;
}
interface Ended {
  readonly model: string;
  readonly uid: string | null;
  readonly sid: string | null;
  readonly account_id: string | null;
  readonly grant_id: string | null;
}

/**
 * Sign-in sessions: their list, and their end. A session that is ended takes its codes, refresh tokens and grants with it, although those
 * outlive one that merely expires (house 24); event and revocation are in the same transaction, the mark that verifiers read follows at
 * once.
 */
export class Sessions {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async list({ query, env: envId }: RequestOf<Contract, 'listSessions'>) {
    const { sql } = this.#ctx.db;
    const spec = { list: `sessions ${envId}`, order: { uid: 'text' } } as const;
    const { items, next_cursor } = await this.#ctx.page(
      query,
      spec,
      ({ where, order, limit }) => sql<Row[]>`
      select s.uid, s.account_id, u.email, to_timestamp((s.payload ->> 'loginTs')::bigint) as created_at, s.expires_at
      from (
        select * from oidc_state
        where env_id = ${envId} and model = 'Session' and uid is not null and account_id is not null and expires_at > now() and ${where}
        order by ${order} limit ${limit}) s
      cross join lateral (select email from users where user_id = s.account_id::uuid offset 0) u
      order by s.uid desc`,
    );
    return {
      items: items.map(({ uid, account_id, email, created_at, expires_at }) => ({
        session_id: uid,
        user_id: account_id,
        email,
        created_at,
        expires_at,
      })),
      next_cursor,
    };
  }

  async revoke({ params, caller, env: envId }: RequestOf<Contract, 'revokeSession'>): Promise<void> {
    const sids = await this.#ctx.db.tx(async tx => {
      const ended = await this.#end(tx, envId, { sid: params.session_id }, 'admin');
      if (ended.length > 0)
        await tx.audit({ action: 'auth.session.revoked', envId, caller, resource: { type: 'session', id: params.session_id } });
      return ended;
    });
    if (sids.length === 0) throw this.#ctx.problem('session_not_found');
    await this.mark(sids);
  }

  async end(envId: string, sid: string, reason: EndReason): Promise<void> {
    await this.mark(await this.#ctx.db.tx(tx => this.#end(tx, envId, { sid }, reason)));
  }

  /** The session under which one refresh token was used twice. The protocol may have deleted all there was to find. */
  async endReused(envId: string, sid: string, userId: string): Promise<void> {
    await this.#ctx.db.tx(async tx => {
      const ended = await this.#end(tx, envId, { sid }, 'reuse_detected');
      if (ended.length === 0) await this.#record(tx, envId, sid, userId, 'reuse_detected');
      await tx.audit({
        action: 'auth.refresh_token.reused',
        envId,
        resource: { type: 'user', id: userId },
        outcome: 'denied',
        details: { session_id: sid },
      });
    });
    await this.mark([sid]);
  }

  /** Every session of a person but one, in the caller's transaction, who marks them after its commit. */
  endAll(tx: IdentityTx, person: Person, reason: EndReason, but?: string): Promise<string[]> {
    return this.#end(tx, person.env_id, { account: person.user_id, ...(but ? { but } : {}) }, reason);
  }

  /** Where a person is signed in, the last used first: what a sign-in began and what its tokens carry on (house 24). */
  async of({ env_id, user_id }: Person): Promise<OwnSession[]> {
    const rows = await this.#ctx.db.sql<OwnSession[]>`
      select s.sid as session_id, d.device, coalesce(d.opened_at, min(s.at)) as created_at, max(s.at) as last_seen_at
      from (
        select uid as sid, to_timestamp((payload ->> 'loginTs')::bigint) as at from oidc_state where model = 'Session'
          and env_id = ${env_id} and account_id = ${user_id} and expires_at > now()
        union all
        select payload ->> 'sessionUid', created_at from oidc_state
        where model = 'RefreshToken' and env_id = ${env_id} and account_id = ${user_id} and expires_at > now() and consumed_at is null
          and payload ? 'sessionUid') s
      left join session_devices d on d.sid = s.sid
      group by s.sid, d.device, d.opened_at order by last_seen_at desc limit 100`;
    return [...rows];
  }

  /** One access token that its client gives back before its time (RFC 7009). */
  async revokeToken(
    envId: string,
    { jti, exp, sub, client_id: clientId }: { jti: string; exp: number; sub: string; client_id: string },
  ): Promise<void> {
    const seconds = Math.max(1, Math.ceil(exp - this.#ctx.clock.now().getTime() / 1_000));
    await this.#ctx.db.tx(async tx => {
      await tx.sql`insert into revocations (kind, value, expires_at) values ('jti', ${jti}, now() + make_interval(secs => ${seconds}))
        on conflict do nothing`;
      await tx.audit({ action: 'auth.token.revoked', envId, resource: { type: 'token', id: jti }, details: { client_id: clientId, sub } });
    });
    await this.#mark('jti', [jti], seconds);
  }

  /**
   * What a person takes back from an application: every token that came from these grants, in the caller's transaction, who marks them
   * after its commit.
   */
  async revokeGrants({ sql }: IdentityTx, grants: readonly string[]): Promise<void> {
    await sql`insert into revocations (kind, value, expires_at) select 'gid', name, now() + make_interval(secs => ${MARK_S})
      from unnest(${[...grants]}::text[]) as given(name) on conflict do nothing`;
  }

  /** Every access token of one grant: what gave it was used twice, or was given back. */
  async endGrant(envId: string, grant: string): Promise<void> {
    await this.#ctx.db.tx(async tx => {
      await this.revokeGrants(tx, [grant]);
      await tx.audit({ action: 'auth.grant.revoked', envId, resource: { type: 'grant', id: grant } });
    });
    await this.markGrants([grant]);
  }

  async markGrants(grants: readonly string[]): Promise<void> {
    await this.#mark('gid', grants, MARK_S);
  }

  /** Tells verifiers. What cannot be told now is told by the job; without the store they let nobody in anyway. */
  async mark(sids: readonly string[]): Promise<void> {
    await this.#mark('sid', sids, MARK_S);
  }

  async #mark(kind: 'sid' | 'jti' | 'gid', values: readonly string[], seconds: number): Promise<void> {
    if (values.length === 0) return;
    try {
      for (const answer of await this.#ctx.kv.pipeline(values.map(value => ['SET', `revoked:${kind}:${value}`, '1', 'EX', seconds])))
        if (answer instanceof Error) throw answer;
      await this.#ctx.db.sql`update revocations set published = true where kind = ${kind} and value in ${this.#ctx.db.sql.list(values)}`;
    } catch (error) {
      this.#ctx.log.error({ err: error, kind, count: values.length }, 'what was revoked could not be marked yet');
    }
  }

  /** A store that came back empty, or was away, must not forgive a revoked session (day-one, Processes). */
  async publish(): Promise<void> {
    const { kv, db } = this.#ctx;
    const remembered = (await kv.call('EXISTS', PUBLISHED)) === 1;
    // To the last one, or the store would count as told of what it was not.
    for (let after = { kind: '', value: '' }; ; ) {
      const rows = await db.sql<{ kind: string; value: string; ttl: number }[]>`
        select kind, value, ceil(extract(epoch from expires_at - now()))::int as ttl from revocations
        where expires_at > now() ${remembered ? db.sql`and not published` : db.sql``} and (kind, value) > (${after.kind}, ${after.value})
          order by kind, value limit ${PER_PASS}`;
      const last = rows.at(-1);
      if (!last) break;
      const answers = await kv.pipeline(
        rows.map(({ kind, value, ttl }) => ['SET', `revoked:${kind}:${value}`, '1', 'EX', Math.max(1, ttl)]),
      );
      for (const answer of answers) if (answer instanceof Error) throw answer;
      const [kinds, values] = [rows.map(({ kind }) => kind), rows.map(({ value }) => value)];
      await db.sql`update revocations set published = true where not published
        and (kind, value) in (select * from unnest(${kinds}::text[], ${values}::text[]))`;
      if (rows.length < PER_PASS) break;
      after = last;
    }
    if (!remembered) await kv.call('SET', PUBLISHED, '1');
  }

  async #end(tx: IdentityTx, envId: string, which: { sid?: string; account?: string; but?: string }, reason: EndReason): Promise<string[]> {
    const { sql } = tx;
    // Found by what they are named with, and then by key: never by all that the environment has.
    const found = which.sid
      ? sql`
        select id_hash from oidc_state where env_id = ${envId} and model = 'Session' and uid = ${which.sid}
        union all select id_hash from oidc_state where payload ? 'sessionUid' and payload ->> 'sessionUid' = ${which.sid}`
      : sql`
        select id_hash from oidc_state
        where model = any(${ENDED}::text[]) and account_id = ${which.account ?? null}
          and coalesce(payload ->> 'sessionUid', uid) is distinct from ${which.but ?? null}::text`;
    const rows = await sql<Ended[]>`
      delete from oidc_state where env_id = ${envId} and model = any(${ENDED}::text[]) and id_hash = any(array(${found}))
      returning model, uid, payload ->> 'sessionUid' as sid, account_id, grant_id`;
    const grants = [...new Set(rows.flatMap(({ grant_id }) => (grant_id ? [grant_id] : [])))];
    if (grants.length > 0) {
      await sql`delete from oidc_state where env_id = ${envId} and model = 'Grant'
        and id_hash = any(array(select sha256(convert_to(id, 'UTF8')) from unnest(${grants}::text[]) as given(id)))`;
    }
    const ended = new Map<string, string>();
    for (const row of rows) {
      const id = row.model === 'Session' ? row.uid : row.sid;
      if (id && row.account_id) ended.set(id, row.account_id);
    }
    for (const [id, userId] of ended) await this.#record(tx, envId, id, userId, reason);
    return [...ended.keys()];
  }

  async #record(tx: IdentityTx, envId: string, sid: string, userId: string, reason: EndReason): Promise<void> {
    const at = this.#ctx.clock.now();
    await tx.sql`
      insert into revocations (kind, value, expires_at) values ('sid', ${sid}, now() + make_interval(secs => ${MARK_S}))
      on conflict (kind, value) do update set expires_at = excluded.expires_at, published = false`;
    await tx.emit('platform:auth:session:revoked', envId, {
      session_id: sid,
      user_id: userId,
      env_id: envId,
      reason,
      revoked_at: at.toISOString(),
    });
  }
}
