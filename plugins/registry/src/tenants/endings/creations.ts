import { type Caller, isProblem, SYSTEM } from '@platform/sdk';
import type { AuditTrail } from '../../audit/audit-trail.ts';
import type { Ctx, RegistryTx } from '../../context.ts';
import type { IdentityFollowUps } from './identity-follow-ups.ts';
import type { Subject } from '../subject.ts';
import type { Env, Org } from '../../../contract/schema/tenant.ts';

interface Row {
  readonly subject_kind: 'org' | 'env';
  readonly subject_id: string;
  readonly caller: Caller;
  readonly correlation_id: string;
}

/** Longer than this the identity service is not waited for (G-SYS-03). */
export const PROVISIONING_MS = 10_000;
/** A create this old has no process behind it any more: the timeout, and as much again. */
export const ABANDONED_S = 20;
/** Time for a call that was given up to end over there, before it is undone. */
const UNDO_AFTER_S = 30;
const BATCH = 100;
const NO_ID = '00000000-0000-0000-0000-000000000000';

/**
 * The middle of a create: from the commit of the record, whose event is held, to the access model. Either both are there and the event is
 * told, or the record goes again; what a crash leaves is told as soon as its access model is found, and else waits for an operator
 * (registry rule 5).
 */
export class Creations {
  readonly #ctx: Ctx;
  readonly #audit: AuditTrail;
  readonly #followUps: IdentityFollowUps;

  constructor(ctx: Ctx, { audit, followUps }: { audit: AuditTrail; followUps: IdentityFollowUps }) {
    this.#ctx = ctx;
    this.#audit = audit;
    this.#followUps = followUps;
  }

  async begin(tx: RegistryTx, { kind, id, orgId }: Subject, caller: Caller, correlationId: string): Promise<void> {
    const { sql } = tx;
    // As much of the caller as the audit row needs when another process has to write it.
    const { subject, userId } = caller;
    await sql`insert into creations ${sql.row({
      subject_kind: kind,
      subject_id: id,
      org_id: orgId,
      caller: sql.json({ kind: caller.kind, subject, ...(userId ? { userId } : {}) }),
      correlation_id: correlationId,
    })}`;
  }

  /** Makes the access model, then lets the world know; without an access model the record goes again and a retry starts clean. */
  async complete(subject: Subject, caller: Caller, correlationId: string, host?: string): Promise<void> {
    const { services, db, problem } = this.#ctx;
    const owner = caller.userId;
    try {
      await services.identity.provisionAccess({
        body: {
          template: subject.kind,
          org_id: subject.orgId,
          ...(subject.kind === 'env' ? { env_id: subject.id } : {}),
          ...(owner ? { owner } : {}),
          ...(host ? { host } : {}),
        },
        // Who may provision is decided where the platform's own workloads live: a new environment has no word in it.
        targetEnvId: SYSTEM.envId,
        signal: AbortSignal.timeout(PROVISIONING_MS),
        idempotencyKey: subject.id,
      });
    } catch (cause) {
      await db.tx(tx => this.#undo(tx, subject));
      // A refusal is final; a call that was only given up may still succeed over there, and is undone later.
      if (!isProblem(cause) || cause.status >= 500) throw problem('provisioning_failed', { cause });
      throw problem('provisioning_failed', { cause, detail: `The identity service refused: ${cause.code}.` });
    }
    await this.#finish(subject, { caller, correlation_id: correlationId });
  }

  /**
   * Forgets an unfinished create of these subjects, its held event included: the record itself goes or is archived. @returns those that
   * were unfinished
   */
  async forget(tx: RegistryTx, ids: readonly string[]): Promise<string[]> {
    const held = await tx.sql<
      { subject_id: string }[]
    >`delete from creations where subject_id = any(${[...ids]}::uuid[]) returning subject_id`;
    for (const { subject_id } of held) await tx.drop(subject_id);
    return held.map(({ subject_id }) => subject_id);
  }

  /**
   * Background: finishes what a dead process had provisioned and not told. An orphan without access model stays as it is, and is reported.
   */
  async recover(signal: AbortSignal): Promise<void> {
    const { db } = this.#ctx;
    // Page by page, so that orphans that stay do not stand before what can be finished.
    for (let after = NO_ID; ; ) {
      const left = await db.sql<Row[]>`
        select subject_kind, subject_id, caller, correlation_id from creations
        where started_at < now() - make_interval(secs => ${ABANDONED_S}) and subject_id > ${after}::uuid order by subject_id
          limit ${BATCH}`;
      await this.#recover(left, signal);
      const last = left.at(-1);
      if (signal.aborted || !last || left.length < BATCH) return;
      after = last.subject_id;
    }
  }

  async #recover(left: readonly Row[], signal: AbortSignal): Promise<void> {
    const { services, log } = this.#ctx;
    for (const row of left) {
      if (signal.aborted) return;
      try {
        const { groups } = await services.identity.describeAccess({ params: { template: row.subject_kind, id: row.subject_id } });
        if (groups.length === 0) continue;
        const subject = await this.#subject(row);
        if (subject) await this.#finish(subject, row);
      } catch (error) {
        log.warn(
          { err: error, subject: row.subject_kind, subject_id: row.subject_id },
          'an unfinished create could not be looked at; it is tried again',
        );
      }
    }
  }

  async #subject({ subject_kind: kind, subject_id: id }: Row): Promise<Subject | undefined> {
    const { sql } = this.#ctx.db;
    const [record] =
      kind === 'org'
        ? await sql<Pick<Org, 'org_id' | 'slug'>[]>`select org_id, slug from orgs where org_id = ${id}`
        : await sql<Pick<Env, 'org_id' | 'slug'>[]>`select org_id, slug from envs where env_id = ${id}`;
    return record && { kind, id, orgId: record.org_id, name: record.slug };
  }

  /** Of a request and a recovery that both come this far, one finds the create unfinished and tells it; the other changes nothing. */
  async #finish(subject: Subject, { caller, correlation_id: correlationId }: Pick<Row, 'caller' | 'correlation_id'>): Promise<void> {
    const { kind, id, name } = subject;
    const owner = caller.userId;
    await this.#ctx.db.tx(async tx => {
      // The row is locked first, as a delete of the tenant does: two orders would end in a deadlock. `then` makes the driver send this
      // statement before the next one.
      const finished = tx.sql<object[]>`delete from creations where subject_kind = ${kind} and subject_id = ${id} returning 1`.then(
        rows => rows.length > 0,
      );
      const sent = Promise.all([finished, tx.release(id)]).then(([isFinished]) => isFinished);
      this.#audit.writeIf(tx, sent, {
        action: `${kind}.created`,
        envId: kind === 'org' ? SYSTEM.envId : id,
        caller,
        correlationId,
        resource: { type: kind, id },
        details: { slug: name },
      });
      // This runs after the write of the audit entry, which waits for the same answer.
      tx.atEnd(async () => {
        if (owner && (await sent))
          for (const realm of kind === 'org' ? [SYSTEM.envId] : [SYSTEM.envId, id])
            await tx.emit('platform:sys:identity:updated', realm, { env_id: realm, subject_ids: [owner] });
        return [];
      });
    });
  }

  async #undo(tx: RegistryTx, subject: Subject): Promise<void> {
    await this.forget(tx, [subject.id]);
    if (subject.kind === 'org') await tx.sql`delete from orgs where org_id = ${subject.id}`;
    else {
      await tx.sql`delete from policy_sets where env_id = ${subject.id}`;
      await tx.sql`delete from envs where env_id = ${subject.id}`;
    }
    await this.#followUps.ask(tx, [subject], UNDO_AFTER_S);
  }
}
