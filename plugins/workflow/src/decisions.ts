import { SYSTEM, type UserCaller } from '@platform/sdk';
import type { NewDecision, RunDetail, Waiting } from '../contract/schema.ts';
import type { Ctx, Of, WorkflowTx } from './context.ts';
import type { RunRecords, StepRow } from './run-records.ts';

const BATCH = 200;

/** Decisions of people about steps that wait (WFL-002). */
export class Decisions {
  readonly #ctx: Ctx;
  readonly #records: RunRecords;

  constructor(ctx: Ctx, records: RunRecords) {
    [this.#ctx, this.#records] = [ctx, records];
  }

  /** The same decision again is answered as before; another one is refused. */
  async decide({
    env,
    stepId,
    runId,
    body,
    caller,
  }: {
    env: string;
    stepId: string;
    runId?: string;
    body: NewDecision;
    caller: UserCaller;
  }): Promise<RunDetail> {
    const { db, problem, clock } = this.#ctx;
    const [found] = await db.sql<{ step_id: string; run_id: string; assignee_group: string | null }[]>`
      select s.step_id, s.run_id, s.assignee_group from steps s join runs r using (run_id)
      where r.env_id = ${env} and s.step_id = ${stepId} and (${runId ?? null}::uuid is null or s.run_id = ${runId ?? null}::uuid)`;
    if (!found) throw problem('step_not_found', { detail: 'This environment has no step of that number.' });
    if (!(await this.#mayDecide(caller, env, found.assignee_group)))
      throw problem('decision_denied', { detail: 'It is for members of the group that the step names, or for who may make any decision.' });
    await db.tx(async tx => {
      const held = await this.#records.locked(tx, found.step_id);
      if (!held) throw problem('step_not_found');
      const { run, step } = held;
      if (step.decision) return this.#requireSame(step, body);
      const now = clock.now();
      if (step.status !== 'paused' || run.status !== 'paused' || now.getTime() >= Date.parse(step.expires_at ?? ''))
        throw problem('step_not_waiting', {
          detail: step.status === 'paused' ? 'The time for a decision is over.' : `It is ${step.status}.`,
        });
      const decision = { ...body, by: caller.userId, at: now.toISOString() };
      await tx.sql`update steps set status = 'running', attempts = 0, decision = ${tx.sql.json(decision)} where step_id = ${step.step_id}`;
      await tx.sql`update runs set status = 'running', updated_at = ${now} where run_id = ${run.run_id}`;
      await this.#records.proceed(tx, run, step.step_id);
      const resource = { type: 'workflow_step', id: step.step_id };
      await tx.audit({
        action: 'workflow.step.decided',
        envId: env,
        caller,
        resource,
        details: { run_id: run.run_id, kind: step.kind, outcome: body.outcome },
      });
    });
    return this.#records.detail(env, found.run_id, caller);
  }

  async list({ env, query, caller }: Of<'listDecisions'>) {
    const { db, page } = this.#ctx;
    const groups = (await this.#mayAll(caller)) ? null : await this.#groupsOf(caller, env);
    return page(
      query,
      { list: `decisions ${env} ${groups?.toSorted().join(' ') ?? '*'}`, order: { 's.paused_at': 'time', 's.step_id': 'id' } },
      ({ where, order, limit }) => db.sql<Waiting[]>`
        select s.step_id, s.run_id, r.workflow, s.kind, s.title, s.assignee_group, s.paused_at, s.expires_at
        from steps s join runs r using (run_id)
        where r.env_id = ${env} and s.status = 'paused' and (${groups}::text[] is null or s.assignee_group = any(${groups}::text[]))
          and ${where}
        order by ${order} limit ${limit}`,
    );
  }

  /** Nobody decided in time: the run fails (`decision_expired`). */
  async expire(signal: AbortSignal): Promise<void> {
    const { db, clock } = this.#ctx;
    for (;;) {
      const rows = await db.sql<{ step_id: string }[]>`
        select step_id from steps where status = 'paused' and expires_at <= ${clock.now()} order by expires_at limit ${BATCH}`;
      for (const { step_id } of rows) {
        if (signal.aborted) return;
        await db.tx(tx => this.#expire(tx, step_id));
      }
      if (rows.length < BATCH) return;
    }
  }

  async #expire(tx: WorkflowTx, stepId: string): Promise<void> {
    const held = await this.#records.locked(tx, stepId);
    if (held?.step.status !== 'paused' || held.run.status !== 'paused') return;
    await this.#records.fail(tx, held.run, { code: 'decision_expired', detail: 'Nobody decided in time.', step_id: stepId });
  }

  #requireSame({ decision }: StepRow, { outcome, comment }: NewDecision): void {
    if (decision?.outcome === outcome && decision.comment === comment) return;
    throw this.#ctx.problem('decided_otherwise', {
      detail: `It was decided before: ${decision?.outcome === 'approved' ? 'approved' : 'declined'}.`,
    });
  }

  async #mayDecide(caller: UserCaller, env: string, group: string | null): Promise<boolean> {
    if (group !== null && (await this.#groupsOf(caller, env)).includes(group)) return true;
    return this.#mayAll(caller);
  }

  #mayAll(caller: UserCaller): Promise<boolean> {
    return this.#ctx.policy.allows(caller, 'workflow:decisions:write');
  }

  /** Groups that count here: the environment's own and the platform's. Another tenant may call a group as it likes. */
  async #groupsOf({ userId }: UserCaller, env: string): Promise<string[]> {
    const { groups } = await this.#ctx.services.identity.userGroups({ params: { user_id: userId } });
    return groups.filter(({ env_id }) => env_id === env || env_id === SYSTEM.envId).map(({ name }) => name);
  }
}
