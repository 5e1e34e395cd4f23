import { type AnyRoute, type Caller, get, Id, Page, PageQuery, post, type Request, reply, type Sql, SYSTEM, Type } from '@platform/sdk';
import { kernelProblem } from '../../base/kernel-problem.ts';
import type { Manifest } from '../../base/manifest.ts';
import { pageOf } from '../../http/paging.ts';
import type { MountedRoute, RouteHandler } from '../../http/service-app.ts';
import type { JobRunner } from '../../work/job-runner.ts';
import type { TaskRunner } from '../../work/task-runner.ts';
import type { Transactions } from '../context/transactions.ts';

export interface WorkRouteParts {
  readonly manifest: Manifest;
  readonly jobs: () => JobRunner | undefined;
  readonly tasks: () => TaskRunner | undefined;
  readonly now: () => Date;
  readonly tx: Transactions['tx'];
}
type Asked = Request<Readonly<Record<string, string>>, { limit?: number; cursor?: string }, unknown, Caller>;

const Items = Type.Object({ items: Type.Array(Type.Object({}, { additionalProperties: true })) });
const ofTask = { task_id: Id };
const Row = Type.Object({}, { additionalProperties: true });

/**
 * What every service with tasks or jobs serves for its page *Work*: figures, the dead with replay, the last run of each job and a run at
 * once.
 */
export function workRoutes(parts: WorkRouteParts): Record<string, MountedRoute> {
  return 'work' in parts.manifest.pages ? { ...taskRoutes(parts), ...jobRoutes(parts) } : {};
}

const shown = { hidden: true, env: 'any' } as const;
const gatesOf = ({ id }: Manifest) => ({ read: { any: [`${id}:work:read`, `${id}:work:admin`] }, admin: `${id}:work:admin` });
const mounted = (route: AnyRoute, handler: (request: Asked) => Promise<unknown>): MountedRoute => ({
  route,
  handler: handler as unknown as RouteHandler,
});

function taskRoutes({ manifest, tasks, now, tx: inTx }: WorkRouteParts): Record<string, MountedRoute> {
  const { read, admin } = gatesOf(manifest);
  const store = () => {
    const runner = tasks();
    if (!runner) throw kernelProblem('not_ready', { detail: 'The service has not started its tasks yet.' });
    return runner.store;
  };
  /** The queues are of all environments: what operators do to them is in the trail of the platform's own (REG-004). */
  const done = async (
    { params, caller }: Asked,
    step: 'replayed' | 'dropped',
    work: (sql: Sql, id: string) => Promise<string | undefined>,
  ) => {
    const id = params['task_id'] as string;
    await inTx(async tx => {
      const name = await work(tx.sql, id);
      if (name === undefined)
        throw kernelProblem('not_found', { detail: 'No dead task of this id: it was replayed or given up in the meantime.' });
      await tx.audit({ action: `work.task.${step}`, envId: SYSTEM.envId, caller, resource: { type: 'task', id }, details: { name } });
    });
    return reply({ ok: true }, { status: 200 });
  };
  return {
    workQueues: mounted(
      get('/v1/admin/work/queues', { summary: 'Queues of this service', gate: read, returns: Items, ...shown }),
      async () => {
        const figures = new Map((await store().figures(now())).map(row => [row.name, row]));
        const none = { waiting: 0, due: 0, running: 0, dead: 0, oldest_due_at: null };
        return { items: Object.entries(manifest.tasks).map(([name, { summary }]) => ({ name, summary, ...none, ...figures.get(name) })) };
      },
    ),
    workDead: mounted(
      get('/v1/admin/work/dead', {
        summary: 'Tasks that failed for good, the latest first',
        gate: read,
        query: PageQuery,
        returns: Page(Row),
        ...shown,
      }),
      ({ query }) =>
        pageOf(query, { list: 'dead tasks', order: { ended_at: 'time', task_id: 'id' } }, async ({ after, limit }) => {
          const [at, id] = (after ?? []) as string[];
          const rows = await store().dead(limit, at === undefined || id === undefined ? undefined : { at, id });
          return rows.map(row => ({ ...row, last_failure: row.failures.at(-1)?.reason ?? null }));
        }),
    ),
    workReplay: mounted(
      post('/v1/admin/work/dead/{task_id}/replay', {
        params: ofTask,
        summary: 'Try a dead task anew',
        gate: admin,
        returns: Row,
        ...shown,
      }),
      request => done(request, 'replayed', (sql, id) => store().replay(sql, id, now())),
    ),
    workDrop: mounted(
      post('/v1/admin/work/dead/{task_id}/drop', { params: ofTask, summary: 'Give a dead task up', gate: admin, returns: Row, ...shown }),
      request => done(request, 'dropped', (sql, id) => store().drop(sql, id)),
    ),
  };
}

function jobRoutes({ manifest, jobs, tx: inTx }: WorkRouteParts): Record<string, MountedRoute> {
  const { read, admin } = gatesOf(manifest);
  return {
    workJobs: mounted(
      get('/v1/admin/work/jobs', { summary: 'Jobs of this service and their last runs', gate: read, returns: Items, ...shown }),
      async () => {
        const records = new Map((await jobs()?.records.list())?.map(record => [record.name, record]));
        const items = Object.entries(manifest.jobs).map(([name, { summary, every, cron, timezone, runs }]) => ({
          name,
          summary,
          runs,
          when: every === undefined ? `${cron} (${timezone ?? 'UTC'})` : `every ${every}`,
          ...records.get(name),
        }));
        return { items };
      },
    ),
    workRun: mounted(
      post('/v1/admin/work/jobs/{name}/run', {
        params: { name: Type.String({ maxLength: 64 }) },
        summary: 'Run a job at once',
        gate: admin,
        returns: Row,
        status: 202,
        ...shown,
      }),
      async ({ params, caller }) => {
        const [runner, name] = [jobs(), params['name'] as string];
        if (!runner || !Object.hasOwn(manifest.jobs, name))
          throw kernelProblem('not_found', { detail: `${manifest.id} has no job ${name}.` });
        // Before it: no job runs at somebody's wish of whom nobody knows.
        await inTx(tx => tx.audit({ action: 'work.job.ordered', envId: SYSTEM.envId, caller, resource: { type: 'job', id: name } }));
        return { state: runner.runNow(name) };
      },
    ),
  };
}
