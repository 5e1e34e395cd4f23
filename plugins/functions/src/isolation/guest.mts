import type { Answer, Done, FaultCode, FromGuest, Run } from './wire.mts';

/** Instructions after which others have their turn: about a tenth of a millisecond. */
const SLICE = 100_000n;
const MAX_LOGS = 50;
const MAX_LOG = 1_024;
const PAGE = 65_536;
type Fault = NonNullable<Done['fault']>;
const faultOf = (code: FaultCode, detail: string): Fault => ({ code, detail });

/** Compiled code, from which every execution has an instance of its own. */
export interface GuestProgram {
  instantiate(host: GuestHost): Promise<GuestInstance>;
}
/** An instance as its metering and its host see it. */
export interface GuestInstance {
  readonly fuel: WebAssembly.Global<'i64'>;
  readonly depth: WebAssembly.Global<'i32'>;
  readonly memory: WebAssembly.Memory | undefined;
  /** Whether it asks for its fuel in slices, by the number that it is given. */
  sliced(number: number): boolean;
  /** Initializes the instance, which has its fuel by now, and calls its hook. */
  call(hook: string, input: Uint8Array): Promise<Uint8Array>;
}
/** What a program's instance is offered. */
export interface GuestHost {
  readonly maxOutput: number;
  log(text: () => Uint8Array, length: number): void;
  abort(): never;
  /** Posts the bytes; `put` takes the answer in. A call that fails leaves the guest without fuel and gives `otherwise`. */
  ask<T>(name: string, body: () => Uint8Array, length: number, put: (answer: Uint8Array) => T, otherwise: T): Promise<T>;
  /** The instance as soon as there is one: what is charged before it is complete is charged to it. */
  begin(instance: GuestInstance): void;
  /** Has code run that cannot wait: it has all its fuel at once. */
  whole<T>(work: () => T): T;
  /** What ends the execution with a fault of this kind. */
  fail(code: FaultCode, detail: string): Error;
}

/** One execution: its fuel, its calls, and what its end means. */
export class Guest implements GuestHost {
  readonly #run: Run;
  readonly #say: (message: FromGuest) => void;
  readonly #enter: () => void;
  readonly #logs: string[] = [];
  readonly #waiting = new Map<number, { resolve: (answer: Answer) => void; reject: (cause: Error) => void }>();
  #instance: GuestInstance | undefined;
  #fault: Fault | undefined;
  #calls = 0;
  /** Fuel that the instance has not been given yet. */
  #rest = 0n;

  constructor(run: Run, { say, enter }: { say: (message: FromGuest) => void; enter: () => void }) {
    [this.#run, this.#say, this.#enter] = [run, say, enter];
  }

  get maxOutput(): number {
    return this.#run.maxOutput;
  }

  async execute(program: GuestProgram | Error): Promise<Done> {
    const begun = performance.now();
    let output: Uint8Array | undefined;
    try {
      if (program instanceof Error) throw program;
      output = await this.#through(program);
    } catch (error) {
      this.#fault ??= this.#read(error);
    }
    for (const { reject } of this.#waiting.values()) reject(new Error('the execution is over'));
    const left = this.#instance ? Number(this.#instance.fuel.value + this.#rest) : this.#run.fuel;
    return {
      type: 'done',
      id: this.#run.id,
      ...(this.#fault ? { fault: this.#fault } : { output: output as Uint8Array }),
      fuelUsed: this.#fault?.code === 'fuel_exhausted' ? this.#run.fuel : Math.max(0, Math.min(this.#run.fuel, this.#run.fuel - left)),
      memoryBytes: this.#instance?.memory?.buffer.byteLength ?? 0,
      logs: this.#logs,
      compileMs: performance.now() - begun,
    };
  }

  async #through(program: GuestProgram): Promise<Uint8Array> {
    this.#enter();
    const instance = await program.instantiate(this);
    this.begin(instance);
    this.#enter();
    const output = await instance.call(this.#run.hook, this.#run.input);
    if (this.#fault) throw new Error(this.#fault.detail);
    if (instance.fuel.value + this.#rest < 0n) throw new Error('fuel');
    if (output.length > this.#run.maxOutput)
      throw this.fail('trap', `The result has ${output.length} bytes, at most ${this.#run.maxOutput} are taken.`);
    return output;
  }

  begin(instance: GuestInstance): void {
    if (this.#instance) return;
    this.#instance = instance;
    instance.fuel.value = BigInt(this.#run.fuel);
    if (instance.sliced(this.#run.id)) this.#divide(instance);
  }

  /** Leaves the instance one slice, and keeps the rest. */
  #divide({ fuel }: GuestInstance): void {
    this.#rest += fuel.value;
    fuel.value = this.#rest < SLICE ? this.#rest : SLICE;
    this.#rest -= fuel.value;
  }

  /** The instance has used up its slice: others run, then it gets another. One without fuel, or too deep, gets none and traps. */
  async slice(): Promise<void> {
    const instance = this.#instance as GuestInstance;
    if (this.#rest <= 0n || instance.depth.value < 0) return;
    await new Promise(resolve => setImmediate(resolve));
    this.#enter();
    if (this.#rest > 0n) this.#divide(instance);
  }

  whole<T>(work: () => T): T {
    const { fuel } = this.#instance as GuestInstance;
    fuel.value += this.#rest;
    const divided = this.#rest > 0n;
    this.#rest = 0n;
    try {
      return work();
    } finally {
      if (divided) this.#divide(this.#instance as GuestInstance);
    }
  }

  log(text: () => Uint8Array, length: number): void {
    this.#charge(100 + (length >>> 4));
    if (this.#logs.length < MAX_LOGS) this.#logs.push(Buffer.from(text().subarray(0, MAX_LOG)).toString('utf8'));
  }

  abort(): never {
    throw this.fail('trap', 'The guest aborted.');
  }

  async ask<T>(name: string, body: () => Uint8Array, length: number, put: (answer: Uint8Array) => T, otherwise: T): Promise<T> {
    try {
      this.#calls += 1;
      const { maxCalls, maxOutput, id } = this.#run;
      if (this.#calls > maxCalls) throw this.fail('callback_failed', `At most ${maxCalls} host calls are made.`);
      if (length > maxOutput) throw this.fail('callback_failed', `A host call carries at most ${maxOutput} bytes.`);
      const number = this.#calls;
      const answered = new Promise<Answer>((resolve, reject) => this.#waiting.set(number, { resolve, reject }));
      this.#say({ type: 'call', id, number, name, body: Uint8Array.from(body()) });
      const answer = await answered;
      this.#charge(answer.fuel);
      if (!answer.body) throw this.fail('callback_failed', `The call ${name} was not answered with success.`);
      return put(answer.body);
    } catch (error) {
      // An exception could be caught by the guest, a trap cannot: without fuel it ends at its next step.
      this.#fault ??= this.#read(error);
      this.#stop();
      return otherwise;
    }
  }

  fail(code: FaultCode, detail: string): Error {
    this.#fault ??= faultOf(code, detail);
    return new Error(detail);
  }

  answer(answer: Answer): void {
    const waiting = this.#waiting.get(answer.number);
    this.#waiting.delete(answer.number);
    this.#enter();
    waiting?.resolve(answer);
  }

  /** The time is over: a call that is waited for comes back with nothing. A guest that were left suspended would never be collected. */
  cancel(): void {
    this.#fault ??= faultOf('trap', 'The time is over.');
    this.#stop();
    for (const { reject } of this.#waiting.values()) reject(new Error('cancelled'));
  }

  #charge(fuel: number): void {
    if (this.#instance) this.#instance.fuel.value -= BigInt(fuel);
  }

  #stop(): void {
    this.#rest = 0n;
    if (this.#instance) this.#instance.fuel.value = -1n;
  }

  /** What an error of the engine means. */
  #read(error: unknown): Fault {
    const said = error instanceof Error ? error.message : String(error);
    const instance = this.#instance;
    if (instance && instance.depth.value < 0) return faultOf('trap', 'Calls are nested too deeply.');
    if (instance && instance.fuel.value + this.#rest < 0n)
      return faultOf('fuel_exhausted', `The fuel of ${this.#run.fuel} instructions is used up.`);
    if (error instanceof RangeError && /call stack/.test(said)) return faultOf('trap', 'Calls are nested too deeply.');
    if (error instanceof RangeError) return faultOf('memory_exceeded', said);
    // Whether so much of the memory is in use that what failed most likely failed for want of more.
    const full = (instance?.memory?.buffer.byteLength ?? 0) >= 0.7 * this.#run.pages * PAGE;
    if (/unreachable|out of bounds|abort/.test(said) && full) return faultOf('memory_exceeded', `The memory is used up: ${said}.`);
    return faultOf('trap', error instanceof WebAssembly.Exception ? 'An exception left the guest.' : said.slice(0, 300));
  }
}
