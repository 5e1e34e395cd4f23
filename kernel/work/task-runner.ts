import { setTimeout as delay } from 'node:timers/promises';
import { isUnavailable, type LeftTask, milliseconds } from '@platform/sdk';
import { busyLanes, byLane, type Room, roomsOf } from './task-rooms.ts';
import { type TakenTask, TaskStore } from './task-store.ts';
import { GRACE_MS, TaskTry, type TaskTryParts, type TaskWorkParts } from './task-try.ts';

export interface TaskRunnerOptions extends TaskWorkParts {
  /** Tasks that run at once in this process. */
  readonly slots?: number;
}

/** Looked for anew when no word of a commit came. */
const POLL_MS = 5_000;
const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
const KEPT_CHECK_MS = 600_000;
/** Of one name that are listed to the plugin. */
const MOST_LEFT = 1_000;

/**
 * Runs the tasks of one service in one process, fairly between lanes. Life: made → started → draining (takes nothing new) → stopped (what
 * has not ended is given back).
 */
export class TaskRunner implements AsyncDisposable {
  readonly store: TaskStore;
  readonly #options: TaskRunnerOptions;
  readonly #tryParts: TaskTryParts;
  readonly #names: readonly string[];
  readonly #rooms: readonly Room[];
  /** Where to look at the next look. */
  readonly #asked = new Set<Room>();
  readonly #running = new Map<string, TaskTry>();
  readonly #ended = new Set<Promise<boolean>>();
  readonly #timers: Disposable[] = [];
  #next: Disposable | undefined;
  #listening: AsyncDisposable | undefined;
  #looking: Promise<void> | undefined;
  #again = false;
  /** Whether something may fall due at a time that is not known here. */
  #isDueUnknown = true;
  #stopping = false;
  /** Not even what a last request asks for is tried any more. */
  #closed = false;

  constructor(options: TaskRunnerOptions) {
    this.#options = options;
    this.#names = Object.keys(options.tasks);
    this.#rooms = roomsOf(options.tasks, options.slots);
    this.store = new TaskStore(options.pool);
    this.#tryParts = { ...options, store: this.store, isStopping: () => this.#stopping };
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
    this.#isDueUnknown = true;
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

  /** What is left of a name, or of one key of it, as its plugin queued it; what no key opens any more is left out. */
  async left(name: string, key?: string): Promise<readonly LeftTask[]> {
    const { open } = this.#options.tasks[name] ?? {};
    const left = await this.store.left({ name, key, most: MOST_LEFT });
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
    for (const underWay of this.#running.values()) underWay.abort();
    const patience = new AbortController();
    await Promise.race([this.idle(), delay(GRACE_MS, undefined, { ref: false, signal: patience.signal }).catch(() => undefined)]);
    patience.abort();
    for (const underWay of this.#running.values()) underWay.leave(new Error('the service stopped'));
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
        if (this.#isDueUnknown && !this.#stopping) {
          this.#isDueUnknown = false;
          this.#wakeAt(await this.store.nextDue(this.#names, began));
        }
      }
    } catch (error) {
      // The poll asks again: a database that is away must not be asked without a pause.
      this.#again = false;
      this.#isDueUnknown = true;
      log[isUnavailable(error) ? 'debug' : 'error'](
        { err: error, service, clock: clock.now() },
        'tasks could not be looked for; the next look tries',
      );
    }
  }

  /** @returns how many were taken */
  async #take(room: Room): Promise<number> {
    const { clock, tasks, worker } = this.#options;
    const { names } = room;
    const here = [...this.#running.values()].map(({ task }) => task).filter(({ name }) => names.includes(name));
    const free = room.slots - here.length;
    if (free <= 0) return 0;
    const now = clock.now();
    const until = new Date(now.getTime() + LEASE_MS);
    const asked = { names, busy: busyLanes(tasks, here), abreast: room.abreast, worker, now, until };
    let taken = await this.store.take({ ...asked, held: byLane(here), most: free, after: room.after });
    // Past the last lane it goes on with the first.
    if (taken.length < free && room.after !== undefined) {
      room.after = undefined;
      const busy = [...asked.busy, ...taken.map(({ lane }) => lane)];
      const held = byLane([...here, ...taken]);
      taken = [...taken, ...(await this.store.take({ ...asked, busy, held, most: free - taken.length, after: undefined }))];
    }
    for (const task of taken) {
      room.after = task.lane;
      void this.#begin(task);
    }
    return taken.length;
  }

  #begin(task: TakenTask): Promise<boolean> {
    const run = this.#run(task);
    this.#ended.add(run);
    void run.finally(() => this.#ended.delete(run));
    return run;
  }

  /** @returns whether the task ended well */
  async #run(task: TakenTask): Promise<boolean> {
    const underWay = new TaskTry(this.#tryParts, task);
    this.#running.set(task.task_id, underWay);
    let isDone = false;
    try {
      return (isDone = await underWay.run());
    } finally {
      this.#running.delete(task.task_id);
      // It is tried again at a time of its own.
      if (!isDone) this.#isDueUnknown = true;
      // One place came free: in its own room alone.
      if (!this.#stopping) void this.#lookIn(this.#rooms.filter(({ names }) => names.includes(task.name)));
    }
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
      for (const id of lost) this.#running.get(id)?.lose();
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
    const wait = due.getTime() - this.#options.clock.now().getTime();
    // It fell due while it was looked up.
    if (wait <= 0) return void this.look();
    if (wait >= POLL_MS) return;
    this.#next = this.#options.clock.every(wait, () => {
      this.#next?.[Symbol.dispose]();
      this.#next = undefined;
      return this.look();
    });
  }
}
