import { isProblem, type Sql } from '@platform/sdk';
import type { Env, Org } from '../../../contract/schema/tenant.ts';
import type { Ctx } from '../../context.ts';
import { authHostOf } from '../sign-in-host.ts';
import type { Subject } from '../subject.ts';

interface Row {
  readonly subject_kind: 'org' | 'env';
  readonly subject_id: string;
  readonly org_id: string;
  readonly asked: string;
  readonly attempts: number;
}

const BATCH = 50;
const PASSES = 100;
const CALL_MS = 5_000;
const FIRST_RETRY_S = 2;
const LAST_RETRY_S = 300;

/**
 * Brings the identity service to what the records say: the sign-in host of an environment, no host for an archived one, no access model for
 * what is gone. Asked for in the transaction of the change and done after it, again and again until it is done (registry rule 7, H-32).
 */
export class IdentityFollowUps {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** `afterSeconds` leaves room for a call that may still be under way. */
  async ask(sql: Sql, subjects: readonly Subject[], afterSeconds = 0): Promise<void> {
    if (subjects.length === 0) return;
    const rows = subjects.map(({ kind, id, orgId, name }) => ({ subject_kind: kind, subject_id: id, org_id: orgId, name, asked: this.#ctx.platform.newId() }));
    await sql`
      insert into identity_follow_ups (subject_kind, subject_id, org_id, name, asked, due_at)
      select subject_kind, subject_id, org_id, name, asked, now() + make_interval(secs => ${afterSeconds})
      from jsonb_to_recordset(${sql.json(rows)}) as row(subject_kind text, subject_id uuid, org_id uuid, name text, asked uuid)
      on conflict (subject_kind, subject_id) do update set asked = excluded.asked, asked_at = now(), due_at = excluded.due_at, attempts = 0, last_error = null`;
  }

  /** Right after the commit, so that the caller sees the effect; what does not succeed now is the background's. */
  async tryNow(subjects: readonly Subject[]): Promise<void> {
    const ids = subjects.slice(0, BATCH).map(({ id }) => id);
    if (ids.length > 0)
      await this.#work(
        await this.#ctx.db.sql<Row[]>`select subject_kind, subject_id, org_id, asked, attempts from identity_follow_ups where subject_id = any(${ids}::uuid[]) and due_at <= now()`,
        true,
      );
  }

  /** The background: what is due, oldest first, in bounded steps; a pass ends when nothing is due. */
  async work(signal: AbortSignal): Promise<void> {
    for (let pass = 0; pass < PASSES && !signal.aborted; pass++) {
      const due = await this.#ctx.db.sql<Row[]>`select subject_kind, subject_id, org_id, asked, attempts from identity_follow_ups where due_at <= now() order by due_at limit ${BATCH}`;
      if (due.length === 0) return;
      await this.#work(due);
    }
  }

  /** `once`: the first failure ends it, because somebody waits for the answer. */
  async #work(rows: readonly Row[], once = false): Promise<void> {
    for (const row of rows) {
      try {
        await this.#follow(row);
        // A newer wish came in between: it stays.
        await this.#ctx.db.sql`delete from identity_follow_ups where subject_id = ${row.subject_id} and asked = ${row.asked}`;
      } catch (error) {
        const reason = isProblem(error) ? `${error.service}/${error.code}` : 'the identity service did not answer';
        const wait = Math.min(FIRST_RETRY_S * 2 ** row.attempts, LAST_RETRY_S);
        await this.#ctx.db
          .sql`update identity_follow_ups set attempts = attempts + 1, last_error = ${reason}, due_at = now() + make_interval(secs => ${wait}) where subject_id = ${row.subject_id} and asked = ${row.asked}`;
        this.#ctx.log.warn({ err: error, subject: row.subject_kind, subject_id: row.subject_id, attempts: row.attempts + 1 }, 'the identity service has not followed a change yet');
        if (once) return;
      }
    }
  }

  async #follow({ subject_kind: kind, subject_id: id, org_id: orgId }: Row): Promise<void> {
    const { services, db, platform } = this.#ctx;
    const signal = AbortSignal.timeout(CALL_MS);
    const [org] = await db.sql<Org[]>`select * from orgs where org_id = ${orgId}`;
    const [env] = kind === 'env' ? await db.sql<Env[]>`select * from envs where env_id = ${id}` : [];
    if (!org || (kind === 'env' && !env)) return void (await services.identity.removeAccess({ params: { template: kind, id }, signal }));
    if (!env) return;
    // An archived environment gives its host away, so that the slug or domain can be used again (C34).
    const archived = env.status === 'archived' || org.status === 'archived';
    const host = archived ? `${env.env_id}.released.invalid` : authHostOf(env, org, platform.domain);
    await services.identity.putRealm({ params: { env_id: id }, body: { host, org_id: orgId }, signal });
  }
}
