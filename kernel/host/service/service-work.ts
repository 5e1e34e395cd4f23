import type { KeySeeds, Logger, SealedBox } from '@platform/sdk';
import type { Clock } from '../../base/clock.ts';
import type { Manifest } from '../../base/manifest.ts';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import { JobRunner } from '../../work/job-runner.ts';
import { TaskRunner } from '../../work/task-runner.ts';
import type { TaskWork } from '../../work/task-try.ts';
import { sealedTask } from '../../work/sealed-task.ts';

interface WorkParts {
  readonly manifest: Manifest;
  /** What the plugin's set-up answered. */
  readonly behaviour: object;
  readonly clock: Clock;
  readonly pool: PostgresPool;
  readonly log: Logger;
  readonly instance: string;
  readonly keys: Readonly<Record<string, SealedBox | KeySeeds>>;
}

/** The jobs that a contract declares, with the work that its plugin gave them; a job without work does not start. */
export function jobsOf({ manifest, behaviour, clock, pool, log, instance }: Omit<WorkParts, 'keys'>): JobRunner {
  const works = (behaviour as { jobs?: Readonly<Record<string, (signal: AbortSignal) => Promise<void>>> }).jobs ?? {};
  const jobs = Object.entries(manifest.jobs).map(([name, job]) => ({
    ...job,
    name,
    work: given(works, name, `${manifest.id} declares the job ${name}`),
  }));
  return new JobRunner({ service: manifest.id, jobs, clock, pool, log, worker: instance });
}

/** The same of its tasks. */
export function tasksOf({ manifest, behaviour, clock, pool, log, instance, keys }: WorkParts): TaskRunner {
  const works = (behaviour as { tasks?: Readonly<Record<string, TaskWork>> }).tasks ?? {};
  const tasks = Object.entries(manifest.tasks).map(
    ([name, def]) =>
      [
        name,
        { def, work: given(works, name, `${manifest.id} declares the task ${name}`), open: sealedTask(manifest.id, name, def, keys)?.open },
      ] as const,
  );
  return new TaskRunner({ service: manifest.id, tasks: Object.fromEntries(tasks), clock, pool, log, worker: instance });
}

function given<T>(works: Readonly<Record<string, T>>, name: string, declared: string): T {
  const work = works[name];
  if (!work) throw new Error(`${declared} and gives it no work`);
  return work;
}
