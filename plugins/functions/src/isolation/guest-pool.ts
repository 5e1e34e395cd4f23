import { readFileSync } from 'node:fs';
import { reasonOf } from '@platform/sdk';
import { guestCode } from './guest-code.ts';
import { LockedProcess } from './locked-process.ts';
import type { Call, Done, FromGuest, Program } from './wire.mts';

export type Failure = 'fuel_exhausted' | 'memory_exceeded' | 'trap' | 'callback_failed' | 'execution_timeout';
export interface Outcome {
  readonly output?: Uint8Array;
  readonly fault?: { readonly code: Failure; readonly detail: string };
  readonly fuelUsed: number;
  readonly memoryBytes: number;
  readonly durationMs: number;
  readonly logs: readonly string[];
  /** The engine died or hung in this guest. */
  readonly broke?: boolean;
}
export interface Execution {
  /** Names the program. */
  readonly module: string;
  readonly program: Program;
  readonly hook: string;
  readonly input: Uint8Array;
  readonly fuel: number;
  readonly timeoutMs: number;
  readonly maxOutput: number;
  readonly maxCalls: number;
  /** Pages that its memory may have, as its program was metered for. */
  readonly pages: number;
  /** Answers a guest's call; without a body the execution fails. */
  readonly call: (call: {
    readonly name: string;
    readonly number: number;
    readonly body: Uint8Array;
    readonly signal: AbortSignal;
  }) => Promise<{ body?: Uint8Array; fuel: number }>;
}
export interface GuestPoolOptions {
  readonly processes: number;
  readonly pages: number;
  readonly heapMb: number;
  readonly log: (fields: object, message: string) => void;
}
interface Running {
  readonly execution: Execution;
  readonly begun: number;
  readonly ended: AbortController;
  readonly resolve: (outcome: Outcome) => void;
  readonly timers: NodeJS.Timeout[];
  slot: Slot;
  /** Whether it was begun anew because another guest took its process along. */
  again: boolean;
}
interface Slot {
  process: LockedProcess;
  readonly running: Map<number, Running>;
  begun: number;
}

/** What a guest that is told to end may take for it before its process is killed. */
const GRACE_MS = 80;
/** A process that dies younger than this is not replaced at once, so that a broken one does not spin. */
const YOUNG_MS = 1_000;

/**
 * Locked processes that run guests. Every execution has an instance of its own and a deadline; a process whose guest does not end is killed
 * and replaced, the other guests in it begin anew elsewhere, and the guest that was entered last is blamed.
 */
export class GuestPool implements AsyncDisposable {
  readonly #options: GuestPoolOptions;
  readonly #slots: Slot[] = [];
  readonly #running = new Map<number, Running>();
  #next = 1;
  #closed = false;
  #respawned = 0;
  #code: string | undefined;

  constructor(options: GuestPoolOptions) {
    this.#options = options;
    // By the first execution it is there; whether it can be had at all, that one says.
    void this.#prepared().catch(() => undefined);
  }

  get figures(): { readonly running: number; readonly processes: number; readonly respawned: number; readonly residentBytes: number } {
    return {
      running: this.#running.size,
      processes: this.#slots.length,
      respawned: this.#respawned,
      residentBytes: this.pids.reduce((sum, pid) => sum + residentBytes(pid), 0),
    };
  }

  /** Ids of the processes, so that they can be measured. */
  get pids(): number[] {
    return this.#slots.flatMap(({ process }) => process.pid ?? []);
  }

  run(execution: Execution): Promise<Outcome> {
    if (this.#closed) return Promise.resolve(failed('execution_timeout', 'The service is stopping.', 0));
    if (this.#code === undefined)
      return this.#prepared().then(
        () => this.run(execution),
        error => failed('trap', `The engine could not be started: ${reasonOf(error)}`, 0),
      );
    return new Promise(resolve => {
      const id = this.#next++;
      const running: Running = {
        execution,
        begun: performance.now(),
        ended: new AbortController(),
        resolve,
        timers: [],
        slot: this.#slot(),
        again: false,
      };
      this.#running.set(id, running);
      running.timers.push(setTimeout(() => this.#late(id), execution.timeoutMs));
      this.#start(id, running);
    });
  }

  async #prepared(): Promise<void> {
    this.#code = await guestCode();
  }

  #start(id: number, running: Running): void {
    const { execution, slot } = running;
    slot.running.set(id, running);
    const { process } = slot;
    if (!process.loaded.has(execution.module)) {
      process.loaded.add(execution.module);
      process.send({ type: 'load', module: execution.module, program: execution.program });
    }
    const { module, hook, input, fuel, maxOutput, maxCalls, pages } = execution;
    process.send({ type: 'run', id, module, hook, input, fuel, maxOutput, maxCalls, pages });
  }

  /** The process with least to do; all of them are there after the first execution. */
  #slot(): Slot {
    while (this.#slots.length < this.#options.processes) this.#slots.push(this.#spawn());
    return this.#slots.reduce((least, slot) => (slot.running.size < least.running.size ? slot : least));
  }

  #spawn(): Slot {
    const slot: Slot = { process: undefined as unknown as LockedProcess, running: new Map(), begun: performance.now() };
    slot.process = this.#process(slot);
    return slot;
  }

  #process(slot: Slot): LockedProcess {
    const { pages, heapMb } = this.#options;
    return new LockedProcess({
      code: this.#code as string,
      pages,
      heapMb,
      heard: message => this.#heard(slot, message),
      died: said => this.#lost(slot, `The engine ended: ${wordsOf(said) ?? 'without a word'}`),
    });
  }

  #heard(slot: Slot, message: FromGuest): void {
    if (message.type === 'ready') return;
    const running = slot.running.get(message.id);
    if (!running) return;
    if (message.type === 'call') return void this.#call(slot, running, message);
    if (message.type === 'missing') {
      // It had to make room for other modules.
      slot.process.loaded.delete(running.execution.module);
      return this.#start(message.id, running);
    }
    this.#finish(message.id, running, outcomeOf(message, performance.now() - running.begun));
  }

  async #call(slot: Slot, { execution, ended }: Running, { id, number, name, body }: Call): Promise<void> {
    const answer = await execution.call({ name, number, body, signal: ended.signal }).catch(() => ({ fuel: 0 }));
    slot.process.send({ type: 'answer', id, number, ...answer });
  }

  /** The deadline: the caller is answered, and the guest is told to end. */
  #late(id: number): void {
    const running = this.#running.get(id);
    if (!running) return;
    const { slot, execution } = running;
    running.ended.abort();
    slot.process.send({ type: 'cancel', id });
    running.timers.push(
      setTimeout(() => {
        if (!slot.running.has(id)) return;
        const blamed = slot.process.marked;
        const culprit = slot.running.get(blamed) ?? running;
        this.#options.log({ module: culprit.execution.module }, 'a guest did not end; its process was killed');
        this.#replace(slot, new Set([id, blamed]), detail(execution.timeoutMs));
      }, GRACE_MS),
    );
  }

  /** A process ended by itself. */
  #lost(slot: Slot, said: string): void {
    const blamed = slot.process.marked;
    this.#options.log({ module: slot.running.get(blamed)?.execution.module, said }, 'a guest process ended');
    this.#replace(slot, new Set([blamed]), said);
  }

  #replace(slot: Slot, blamed: ReadonlySet<number>, said: string): void {
    const innocent: [number, Running][] = [];
    for (const [id, running] of slot.running) {
      const at = { durationMs: performance.now() - running.begun };
      if (isOver(running))
        this.#finish(id, running, {
          ...failed('execution_timeout', detail(running.execution.timeoutMs), at.durationMs),
          broke: blamed.has(id),
        });
      else if (blamed.has(id) || running.again)
        this.#finish(id, running, { ...failed('trap', said, at.durationMs), broke: blamed.has(id) });
      else innocent.push([id, running]);
    }
    slot.running.clear();
    slot.process[Symbol.dispose]();
    this.#respawned += 1;
    if (this.#closed) return;
    const begin = () => {
      if (this.#closed) return;
      // A caller that was late while this one waited for the next process has replaced this one too.
      slot.process[Symbol.dispose]();
      slot.begun = performance.now();
      slot.process = this.#process(slot);
      for (const [id, running] of slot.running) this.#start(id, running);
    };
    // What waits for the new process is kept in its place meanwhile.
    for (const [id, running] of innocent) {
      running.again = true;
      running.slot = slot;
      slot.running.set(id, running);
    }
    if (performance.now() - slot.begun < YOUNG_MS && blamed.size === 1 && blamed.has(0)) setTimeout(begin, YOUNG_MS);
    else begin();
  }

  #finish(id: number, running: Running, outcome: Outcome): void {
    for (const timer of running.timers) clearTimeout(timer);
    const over = isOver(running);
    running.ended.abort();
    running.slot.running.delete(id);
    this.#running.delete(id);
    running.resolve(
      over && !outcome.output ? { ...outcome, fault: { code: 'execution_timeout', detail: detail(running.execution.timeoutMs) } } : outcome,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const [id, running] of this.#running)
      this.#finish(id, running, failed('execution_timeout', 'The service is stopping.', performance.now() - running.begun));
    for (const { process } of this.#slots) process[Symbol.dispose]();
    this.#slots.length = 0;
  }
}

const PAGE_BYTES = 4_096;

/** Resident memory of a process where the system says it; 0 where it is gone. */
function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}

/** Whether the deadline was reached. Its timer may fire a fraction of a millisecond before the clock says so, and counts too. */
const isOver = ({ begun, execution, ended }: Running): boolean => ended.signal.aborted || performance.now() - begun >= execution.timeoutMs;

/** The first line of what a dying engine says that has words; V8 frames them with `#`. */
const wordsOf = (said: string): string | undefined =>
  said
    .split('\n')
    .map(line => line.replace(/^[#\s]+/, ''))
    .find(line => /\w/.test(line));
const detail = (timeoutMs: number): string => `It took longer than ${timeoutMs} ms.`;
const failed = (code: Failure, said: string, durationMs: number): Outcome => ({
  fault: { code, detail: said },
  fuelUsed: 0,
  memoryBytes: 0,
  durationMs,
  logs: [],
});

function outcomeOf({ output, fault, fuelUsed, memoryBytes, logs }: Done, durationMs: number): Outcome {
  return { ...(fault ? { fault } : { output: output as Uint8Array }), fuelUsed, memoryBytes, durationMs, logs };
}
