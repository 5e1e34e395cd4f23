import { setTimeout as delay } from 'node:timers/promises';
import { isProblem, type LeftTask, type Logger, type TaskDef, type TaskRun, isUnavailable } from '@platform/sdk';
import { type Clock, milliseconds } from '../base/clock.ts';
import type { PostgresPool } from '../storage/postgres/postgres-pool.ts';
import { inScope } from '../telemetry/request-scope.ts';
import { failureReason } from './failure-reason.ts';
import { type TakenTask, TaskStore } from './task-store.ts';

export type TaskWork = (payload: never, run: TaskRun) => Promise<void>;
export interface RunnableTask {
  readonly def: TaskDef;
  readonly work: TaskWork;
  /** Opens what is sealed; `undefined` when the key is not known any more. */
  readonly open?: ((payload: unknown) => unknown) | undefined;
}
export interface TaskRunnerOptions {
  readonly service: string;
  readonly tasks: Readonly<Record<string, RunnableTask>>;
  readonly pool: PostgresPool;
  readonly clock: Clock;
  readonly log: Logger;
  /** Names this process, for leases. */
  readonly worker: string;
  /** Tasks that run at once in this process. */
  readonly slots?: number;
}

/** Looked for anew when no word of a commit came. */
const POLL_MS = 5_000;
const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
const KEPT_CHECK_MS = 600_000;
/** A handler that does not heed its signal is left behind after this long. */
const GRACE_MS = 5_000;
/** Of one name that are listed to the plugin. */
const MOST_LEFT = 1_000;
const SLOTS = 8;
const ABREAST = 4;
const ATTEMPTS = 5;
const BACKOFF_S: readonly number[] = [5, 30, 120, 600];

const attemptsOf = ({ attempts = ATTEMPTS }: TaskDef): number => (attempts === 'unlimited' ? Number.POSITIVE_INFINITY : attempts);

interface Running {
  readonly task: TakenTask;
  readonly ending: AbortController;
  /** This worker's no more: its end is somebody else's to write down. */
  lost: boolean;
  /** Goes on without its handler. */
  readonly leave: (reason: Error) => void;
  finished: boolean;
}

/** Places for tasks of some names: those that share, or one that has its own. */
interface Room {
  readonly names: readonly string[];
  readonly slots: number;
  /** The lane that was served last. */
  after: string | undefined;
}

/**
 * Runs the tasks of one service in one process, fairly between lanes. Life: made → started → draining (takes nothing new) → stopped (what
 * has not
 * ended is given back).
 */
export class TaskRunner implements AsyncDisposable {
  readonly store: TaskStore;
  readonly #options: TaskRunnerOptions;
  readonly #names: readonly string[];
  readonly #rooms: readonly Room[];
  /** Where to look at the next look. */
  readonly #asked = new Set<Room>();
  readonly #running = new Map<string, Running>();
  readonly #ended = new Set<Promise<boolean>>();
  readonly #timers: Disposable[] = [];
  #next: Disposable | undefined;
  #listening: AsyncDisposable | undefined;
  #looking: Promise<void> | undefined;
  #again = false;
  #stopping = false;
  /** Not even what a last request asks for is tried any more. */
  #closed = false;

  constructor(options: TaskRunnerOptions) {
    this.#options = options;
    this.#names = Object.keys(options.tasks);
    const { tasks, slots = SLOTS } = options;
    const shared = this.#names.filter(name => tasks[name]?.def.slots === undefined);
    const own = this.#names.flatMap(name =>
      shared.includes(name) ? [] : [{ names: [name], slots: tasks[name]?.def.slots ?? 1, after: undefined }],
    );
    this.#rooms = [...(shared.length > 0 ? [{ names: shared, slots, after: undefined }] : []), ...own];
    this.store = new TaskStore(options.pool);
  }

  get running(): number {
    return this.#running.size;
  }

  async start(): Promise<void> {
    if (this.#names.length === 0) return;
    const { pool, clock, service } = this.#options;
    this.#listening = await pool.listen(`${service}_work`, () => void this.look());
    this.#timers.push(
      clock.every(POLL_MS, () => this.#reclaim()),
      clock.every(RENEW_MS, () => this.#renew()),
      clock.every(KEPT_CHECK_MS, () => this.#forget()),
    );
    void this.look();
  }

  /** Takes what is due while there is room. Asked for again while it looks, it looks again. */
  look(): Promise<void> {
    return this.#lookIn(this.#rooms);
  }

  #lookIn(rooms: readonly Room[]): Promise<void> {
    for (const room of rooms) this.#asked.add(room);
    this.#again = true;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
      // Asked for between the last look and this moment.
      if (this.#again && !this.#stopping) void this.#lookIn([]);
    });
    return this.#looking;
  }

  /** Tries the task that waits under a key at once, beside all places there are: somebody waits for it. */
  async attempt(name: string, key: string): Promise<'done' | 'failed' | 'absent'> {
    const { clock, worker } = this.#options;
    if (this.#closed) return 'absent';
    const task = await this.store.takeKey({ name, key, worker, until: new Date(clock.now().getTime() + LEASE_MS) });
    if (!task) return 'absent';
    return (await this.#begin(task)) ? 'done' : 'failed';
  }

  /** What is left of a name, as its plugin queued it; what no key opens any more is left out. */
  async left(name: string): Promise<readonly LeftTask[]> {
    const { open } = this.#options.tasks[name] ?? {};
    const left = await this.store.left(name, MOST_LEFT);
    return open ? left.map(task => ({ ...task, payload: open(task.payload) })).filter(({ payload }) => payload !== undefined) : left;
  }

  /** Takes nothing new from now on; resolves when what runs has ended. */
  async drain(): Promise<void> {
    this.#stopping = true;
    await this.idle();
  }

  /** Resolves when nothing runs here. */
  async idle(): Promise<void> {
    await this.#looking;
    while (this.#ended.size > 0) await Promise.all(this.#ended);
  }

  /** Takes nothing new, waits for what runs until the caller has waited long enough, and gives the rest back. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true;
    this.#closed = true;
    for (const timer of this.#timers) timer[Symbol.dispose]();
    this.#next?.[Symbol.dispose]();
    await this.#listening?.[Symbol.asyncDispose]();
    await this.#looking;
    for (const { ending } of this.#running.values()) ending.abort();
    const patience = new AbortController();
    await Promise.race([this.idle(), delay(GRACE_MS, undefined, { ref: false, signal: patience.signal }).catch(() => undefined)]);
    patience.abort();
    for (const { leave } of this.#running.values()) leave(new Error('the service stopped'));
    await this.idle();
  }

  async #look(): Promise<void> {
    const { clock, log, service } = this.#options;
    try {
      while (this.#again && !this.#stopping) {
        this.#again = false;
        const rooms = [...this.#asked];
        this.#asked.clear();
        // What falls due while it looks was not taken and is not past either: the next look is for it.
        const began = clock.now();
        for (const room of rooms) while (!this.#stopping && (await this.#take(room)) > 0);
        if (!this.#stopping) this.#wakeAt(await this.store.nextDue(this.#names, began));
      }
    } catch (error) {
      // The poll asks again: a database that is away must not be asked without a pause.
      this.#again = false;
      log[isUnavailable(error) ? 'debug' : 'error'](
        { err: error, service, clock: clock.now() },
        'tasks could not be looked for; the next look tries',
      );
    }
  }

  /** @returns how many were taken */
  async #take(room: Room): Promise<number> {
    const { clock, worker } = this.#options;
    const { names } = room;
    const here = [...this.#running.values()].filter(({ task }) => names.includes(task.name));
    const free = room.slots - here.length;
    if (free <= 0) return 0;
    const now = clock.now();
    const asked = { names, busy: this.#busy(here), worker, now, until: new Date(now.getTime() + LEASE_MS) };
    let taken = await this.store.take({ ...asked, most: free, after: room.after });
    // Past the last lane it goes on with the first.
    if (taken.length < free && room.after !== undefined) {
      room.after = undefined;
      const busy = [...asked.busy, ...taken.map(({ lane }) => lane)];
      taken = [...taken, ...(await this.store.take({ ...asked, busy, most: free - taken.length, after: undefined }))];
    }
    for (const task of taken) {
      room.after = task.lane;
      void this.#begin(task);
    }
    return taken.length;
  }

  /** Lanes that have as many of these under way as they may. */
  #busy(here: readonly Running[]): string[] {
    const counts = new Map<string, { held: number; most: number }>();
    for (const { task } of here) {
      const most = this.#options.tasks[task.name]?.def.abreast ?? ABREAST;
      const known = counts.get(task.lane) ?? { held: 0, most };
      counts.set(task.lane, { held: known.held + 1, most: Math.min(known.most, most) });
    }
    return [...counts].filter(([, { held, most }]) => held >= most).map(([lane]) => lane);
  }

  #begin(task: TakenTask): Promise<boolean> {
    const run = this.#run(task);
    this.#ended.add(run);
    void run.finally(() => this.#ended.delete(run));
    return run;
  }

  /** @returns whether the task ended well */
  async #run(task: TakenTask): Promise<boolean> {
    const { service, tasks, clock } = this.#options;
    const { def, work, open } = tasks[task.name] as RunnableTask;
    const late = Promise.withResolvers<never>();
    const running: Running = { task, ending: new AbortController(), lost: false, finished: false, leave: late.reject };
    this.#running.set(task.task_id, running);
    const limit = milliseconds(def.timeout ?? '1m');
    using _limit = clock.every(limit, () => running.ending.abort());
    using _grace = clock.every(limit + GRACE_MS, () => late.reject(new Error('it did not end in its time')));
    const scope = { correlationId: task.correlation_id, service, subject: task.subject, ...(task.lane ? { envId: task.lane } : {}) };
    try {
      // More tries than it has: its process died each time, and would again.
      if (task.attempts > attemptsOf(def)) throw new Error('it was tried too often');
      const payload = open ? open(task.payload) : task.payload;
      if (payload === undefined)
        throw Object.assign(new Error('what it carries is sealed under a key that is not known'), { code: 'sealed_under_another_key' });
      const done = inScope(scope, () => work(payload as never, this.#handed(running)));
      done.catch(() => undefined);
      await Promise.race([done, late.promise]);
      if (!running.finished && !running.lost) await this.#finish(running);
      return true;
    } catch (error) {
      // Finished in a transaction that did not commit, it is not finished; where that did commit, nothing is left to be marked.
      if (!running.lost) await this.#failed(running, error);
      return false;
    } finally {
      this.#running.delete(task.task_id);
      // One place came free: in its own room alone.
      if (!this.#stopping) void this.#lookIn(this.#rooms.filter(({ names }) => names.includes(task.name)));
    }
  }

  #handed(running: Running): TaskRun {
    const { task, ending } = running;
    const { worker } = this.#options;
    return {
      taskId: task.task_id,
      attempt: task.attempts,
      envId: task.lane || undefined,
      correlationId: task.correlation_id,
      signal: ending.signal,
      finish: async tx => {
        if (!(await this.store.finish(tx.sql, task, worker, this.#keptFrom(task))))
          throw new Error('another process has taken this task over');
        running.finished = true;
      },
    };
  }

  #keptFrom({ name }: TakenTask): Date | undefined {
    return this.#options.tasks[name]?.def.keep === undefined ? undefined : this.#options.clock.now();
  }

  async #finish({ task }: Running): Promise<void> {
    const { pool, worker, log } = this.#options;
    // Not written down, it comes again when its lease ends: at least once.
    await this.store
      .finish(pool.sql, task, worker, this.#keptFrom(task))
      .catch(error => log.warn({ err: error, task: task.name }, 'a task ended and could not be marked so; it comes again'));
  }

  async #failed({ task, ending }: Running, error: unknown): Promise<void> {
    const { tasks, clock, worker, log } = this.#options;
    const now = clock.now();
    const written = async (): Promise<void> => {
      if (this.#stopping && ending.signal.aborted) return this.store.giveBack([task.task_id], worker, now);
      const { def } = tasks[task.name] as RunnableTask;
      const { backoff = BACKOFF_S } = def;
      const reason = failureReason(error);
      const isFinal = def.attempts !== 'unlimited' && ((isProblem(error) && error.retry === 'never') || task.attempts >= attemptsOf(def));
      const wait = (backoff[Math.min(task.attempts, backoff.length) - 1] ?? 0) * 1_000;
      const isMarked = await this.store.fail(task, worker, {
        failure: { at: now.toISOString(), reason },
        again: isFinal ? undefined : new Date(now.getTime() + wait),
        now,
      });
      if (!isMarked)
        return log.warn(
          { err: error, task: task.name, task_id: task.task_id },
          'a try failed whose task had ended, or is with another process: nothing is tried again for it',
        );
      const fields = { task: task.name, task_id: task.task_id, attempt: task.attempts, err: error };
      if (isFinal)
        log.error({ ...fields, code: 'task_dead' }, 'a task failed for the last time; it lies with the dead and can be replayed');
      // An outage is told once a task, not at every try.
      else log[task.attempts === 1 ? 'warn' : 'info']({ ...fields, again_s: wait / 1_000 }, 'a task failed and is tried again');
    };
    await written().catch(cause =>
      log.warn({ err: cause, task: task.name }, 'the end of a task could not be written; it comes again when its lease ends'),
    );
  }

  async #reclaim(): Promise<void> {
    await this.store
      .reclaim(this.#options.clock.now())
      .catch(error => this.#options.log.debug({ err: error }, 'leases of tasks could not be looked at'));
    await this.look();
  }

  async #renew(): Promise<void> {
    if (this.#running.size === 0) return;
    const { worker, clock, log } = this.#options;
    try {
      const lost = await this.store.extend(worker, [...this.#running.keys()], new Date(clock.now().getTime() + LEASE_MS));
      for (const id of lost) {
        const running = this.#running.get(id);
        if (!running || running.finished) continue;
        running.lost = true;
        running.ending.abort();
      }
    } catch (error) {
      log.debug({ err: error }, 'leases of tasks could not be renewed');
    }
  }

  async #forget(): Promise<void> {
    const { tasks, clock, log } = this.#options;
    for (const [name, { def }] of Object.entries(tasks))
      for (const [state, kept] of [
        ['done', def.keep],
        ['dead', def.keepDead],
      ] as const)
        if (kept !== undefined)
          await this.store
            .forget(name, state, new Date(clock.now().getTime() - milliseconds(kept)))
            .catch(error => log.debug({ err: error, task: name }, 'ended tasks could not be forgotten'));
  }

  /** Looks again when the next one falls due, if that is before the next poll. */
  #wakeAt(due: Date | undefined): void {
    this.#next?.[Symbol.dispose]();
    this.#next = undefined;
    if (!due) return;
    const wait = Math.max(1, due.getTime() - this.#options.clock.now().getTime());
    if (wait >= POLL_MS) return;
    this.#next = this.#options.clock.every(wait, () => {
      this.#next?.[Symbol.dispose]();
      this.#next = undefined;
      return this.look();
    });
  }
}
