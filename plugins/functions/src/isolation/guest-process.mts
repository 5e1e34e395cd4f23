import { writeSync } from 'node:fs';
import type { Answer, Done, FaultCode, FromGuest, Run, ToGuest } from './wire.mts';

/*
 * What runs in a locked process: it may read this folder and speak to its parent, and nothing else (Node's permission model; no file system, no network,
 * no processes, no code from strings). One guest at a time has the thread; one that waits for a call of its own leaves it to others.
 */

const MAX_MODULES = 64;
const MAX_LOGS = 50;
const MAX_LOG = 1_024;
const MARK = 4;
const PAGE = 65_536;
const modules = new Map<string, WebAssembly.Module | Error>();
const running = new Map<number, Guest>();
const mark = new Float64Array(1);
const say = (message: FromGuest): void => void process.send?.(message);
/** Read by the parent when this process is dead or stuck: whose fault it is. */
function enter(id: number): void {
  mark[0] = id;
  writeSync(MARK, new Uint8Array(mark.buffer), 0, 8, 0);
}

interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly alloc: (length: number) => number;
  readonly [name: string]: unknown;
}
const fuelOf = (exports: Exports) => exports['$rt.fuel'] as WebAssembly.Global<'i64'>;
const depthOf = (exports: Exports) => exports['$rt.depth'] as WebAssembly.Global<'i32'>;
type Fault = NonNullable<Done['fault']>;
const fault = (code: FaultCode, detail: string): Fault => ({ code, detail });

class Guest {
  readonly #run: Run;
  readonly #logs: string[] = [];
  readonly #waiting = new Map<number, { resolve: (answer: Answer) => void; reject: (cause: Error) => void }>();
  #exports: Exports | undefined;
  #fault: Fault | undefined;
  #calls = 0;
  /** Whether the guest was given its fuel. */
  #begun = false;

  constructor(run: Run) {
    this.#run = run;
  }

  async execute(): Promise<void> {
    const begun = performance.now();
    let output: Uint8Array | undefined;
    try {
      const module = modules.get(this.#run.module);
      if (!module) return say({ type: 'missing', id: this.#run.id });
      if (module instanceof Error) throw module;
      running.set(this.#run.id, this);
      output = await this.#enter(module);
    } catch (error) {
      this.#fault ??= this.#read(error);
    }
    running.delete(this.#run.id);
    for (const { reject } of this.#waiting.values()) reject(new Error('the execution is over'));
    const exports = this.#exports;
    const left = exports ? Number(fuelOf(exports).value) : 0;
    const used = this.#begun ? (this.#fault?.code === 'fuel_exhausted' ? this.#run.fuel : Math.max(0, Math.min(this.#run.fuel, this.#run.fuel - left))) : 0;
    say({
      type: 'done',
      id: this.#run.id,
      ...(this.#fault ? { fault: this.#fault } : { output: output as Uint8Array }),
      fuelUsed: used,
      memoryBytes: exports?.memory instanceof WebAssembly.Memory ? exports.memory.buffer.byteLength : 0,
      logs: this.#logs,
      compileMs: performance.now() - begun,
    });
  }

  async #enter(module: WebAssembly.Module): Promise<Uint8Array> {
    enter(this.#run.id);
    const instance = await WebAssembly.instantiate(module, this.#imports(module));
    const exports = instance.exports as Exports;
    this.#exports = exports;
    fuelOf(exports).value = BigInt(this.#run.fuel);
    this.#begun = true;
    enter(this.#run.id);
    (exports['$rt.start'] as (() => void) | undefined)?.();
    (exports['_initialize'] as (() => void) | undefined)?.();
    const pointer = this.#write(this.#run.input);
    const hook = exports[this.#run.hook] as (pointer: number, length: number) => bigint;
    const suspends = WebAssembly.Module.imports(module).some(({ name }) => name !== 'log' && name !== 'abort');
    const packed = suspends ? await (WebAssembly as unknown as Jspi).promising(hook)(pointer, this.#run.input.length) : hook(pointer, this.#run.input.length);
    if (this.#fault) throw new Error(this.#fault.detail);
    if (fuelOf(exports).value < 0n) throw new Error('fuel');
    return this.#bytes(packed, this.#run.maxOutput);
  }

  #imports(module: WebAssembly.Module): WebAssembly.Imports {
    const names = WebAssembly.Module.imports(module).map(({ name }) => name);
    const calls = names
      .filter(name => name !== 'log' && name !== 'abort')
      .map(name => [name, new (WebAssembly as unknown as Jspi).Suspending((pointer: number, length: number) => this.#call(name, pointer, length))]);
    return { platform: { ...Object.fromEntries(calls), log: (pointer: number, length: number) => this.#log(pointer, length) }, env: { abort: () => this.#abort() } } as WebAssembly.Imports;
  }

  #log(pointer: number, length: number): void {
    const exports = this.#exports as Exports;
    fuelOf(exports).value -= BigInt(100 + (length >>> 4));
    if (this.#logs.length < MAX_LOGS) this.#logs.push(Buffer.from(this.#view(pointer, Math.min(length >>> 0, MAX_LOG))).toString('utf8'));
  }

  /** AssemblyScript's way to say that an assertion failed. */
  #abort(): never {
    this.#fault = fault('trap', 'The guest aborted.');
    throw new Error('abort');
  }

  async #call(name: string, pointer: number, length: number): Promise<bigint> {
    const exports = this.#exports as Exports;
    try {
      this.#calls += 1;
      if (this.#calls > this.#run.maxCalls) throw this.#fail('callback_failed', `At most ${this.#run.maxCalls} host calls are made.`);
      if (length >>> 0 > this.#run.maxOutput) throw this.#fail('callback_failed', `A host call carries at most ${this.#run.maxOutput} bytes.`);
      const body = Uint8Array.from(this.#view(pointer, length >>> 0));
      const number = this.#calls;
      const answer = await new Promise<Answer>((resolve, reject) => {
        this.#waiting.set(number, { resolve, reject });
        say({ type: 'call', id: this.#run.id, number, name, body });
      });
      fuelOf(exports).value -= BigInt(answer.fuel);
      if (!answer.body) throw this.#fail('callback_failed', `The host call ${number} of ${name} failed.`);
      const at = this.#write(answer.body);
      return (BigInt(at >>> 0) << 32n) | BigInt(answer.body.length);
    } catch (error) {
      // An exception could be caught by the guest, a trap cannot: without fuel it ends at its next step.
      this.#fault ??= this.#read(error);
      fuelOf(exports).value = -1n;
      return 0n;
    }
  }

  #fail(code: FaultCode, detail: string): Error {
    this.#fault ??= fault(code, detail);
    return new Error(detail);
  }

  answer(answer: Answer): void {
    const waiting = this.#waiting.get(answer.number);
    this.#waiting.delete(answer.number);
    enter(this.#run.id);
    waiting?.resolve(answer);
  }

  /** The time is over: a call that is waited for comes back with nothing. A guest that were left suspended would never be collected. */
  cancel(): void {
    this.#fault ??= fault('trap', 'The time is over.');
    if (this.#exports) fuelOf(this.#exports).value = -1n;
    for (const { reject } of this.#waiting.values()) reject(new Error('cancelled'));
  }

  #write(bytes: Uint8Array): number {
    const exports = this.#exports as Exports;
    const pointer = exports.alloc(bytes.length) >>> 0;
    this.#view(pointer, bytes.length).set(bytes);
    return pointer;
  }

  #view(pointer: number, length: number): Uint8Array {
    const { buffer } = (this.#exports as Exports).memory;
    if (pointer >>> 0 > buffer.byteLength || (pointer >>> 0) + length > buffer.byteLength) throw this.#fail('trap', 'The guest named bytes outside its memory.');
    return new Uint8Array(buffer, pointer >>> 0, length);
  }

  #bytes(packed: bigint, most: number): Uint8Array {
    if (typeof packed !== 'bigint') throw this.#fail('trap', 'The hook gave no i64.');
    const [pointer, length] = [Number((packed >> 32n) & 0xffffffffn), Number(packed & 0xffffffffn)];
    if (length > most) throw this.#fail('trap', `The result has ${length} bytes, at most ${most} are taken.`);
    return Uint8Array.from(this.#view(pointer, length));
  }

  /** What an error of the engine means. */
  #read(error: unknown): Fault {
    const said = error instanceof Error ? error.message : String(error);
    const exports = this.#exports;
    if (exports && depthOf(exports).value < 0) return fault('trap', 'Calls are nested too deeply.');
    if (exports && this.#begun && fuelOf(exports).value < 0n) return fault('fuel_exhausted', `The fuel of ${this.#run.fuel} instructions is used up.`);
    if (error instanceof RangeError && /call stack/.test(said)) return fault('trap', 'Calls are nested too deeply.');
    if (error instanceof RangeError) return fault('memory_exceeded', said);
    if (/unreachable|out of bounds|abort/.test(said) && isFull(exports, this.#run.pages)) return fault('memory_exceeded', `The memory is used up: ${said}.`);
    return fault('trap', error instanceof WebAssembly.Exception ? 'An exception left the guest.' : said.slice(0, 300));
  }
}

/** Whether so much of the memory is in use that what failed most likely failed for want of more. */
function isFull(exports: Exports | undefined, pages: number): boolean {
  return exports?.memory instanceof WebAssembly.Memory && exports.memory.buffer.byteLength >= 0.7 * pages * PAGE;
}

interface Jspi {
  readonly Suspending: new (call: (pointer: number, length: number) => Promise<bigint>) => object;
  promising(hook: (pointer: number, length: number) => bigint): (pointer: number, length: number) => Promise<bigint>;
}

process.on('message', (message: ToGuest) => {
  switch (message.type) {
    case 'load': {
      if (modules.size >= MAX_MODULES) modules.delete(modules.keys().next().value as string);
      try {
        modules.set(message.module, new WebAssembly.Module(message.bytes as Uint8Array<ArrayBuffer>));
      } catch (error) {
        modules.set(message.module, error as Error);
      }
      return;
    }
    case 'run':
      return void new Guest(message).execute();
    case 'answer':
      return running.get(message.id)?.answer(message);
    case 'cancel':
      return running.get(message.id)?.cancel();
    case 'forget':
      return void modules.delete(message.module);
  }
});
process.on('disconnect', () => process.exit(0));
say({ type: 'ready' });
