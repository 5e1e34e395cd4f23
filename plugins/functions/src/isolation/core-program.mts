import type { GuestHost, GuestInstance, GuestProgram } from './guest.mts';

interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly alloc: (length: number) => number;
  readonly [name: string]: unknown;
}
type Hook = (pointer: number, length: number) => bigint;
type HostFunction = (pointer: number, length: number) => Promise<bigint>;
interface Jspi {
  readonly Suspending: new (call: HostFunction | ((number: number) => Promise<void>)) => object;
  promising(hook: Hook): HostFunction;
  promising(start: () => void): () => Promise<void>;
}
const jspi = WebAssembly as unknown as Jspi;
/** Imports that are answered at once. */
const IMMEDIATE = new Set(['log', 'abort']);

/** `(module (import "h" "f" (func (param i32))) (export "f" (func 0)))`: only functions of a module can be put into tables. */
const PASSES_ON = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 1, 127, 0, 2, 7, 1, 1, 104, 1, 102, 0, 0, 7, 5, 1, 1, 102, 0, 0];

/** A function that code calls which then waits, while others run. */
export function suspendingFunction(call: (number: number) => Promise<void>): () => void {
  const module = new WebAssembly.Module(Uint8Array.from(PASSES_ON));
  const { exports } = new WebAssembly.Instance(module, { h: { f: new jspi.Suspending(call) } } as unknown as WebAssembly.Imports);
  return exports['f'] as () => void;
}

/**
 * A core module with the interface of functions: a hook takes where its input lies and how long it is, and gives the same of its output
 * (G-FUNC-05).
 */
export class CoreProgram implements GuestProgram {
  readonly #module: WebAssembly.Module;
  readonly #calls: readonly string[];
  readonly #askForMore: () => void;

  /** `askForMore` is what its instances call for more fuel. */
  constructor(bytes: Uint8Array, askForMore: () => void) {
    this.#askForMore = askForMore;
    this.#module = new WebAssembly.Module(bytes as Uint8Array<ArrayBuffer>);
    this.#calls = WebAssembly.Module.imports(this.#module)
      .map(({ name }) => name)
      .filter(name => !IMMEDIATE.has(name));
  }

  async instantiate(host: GuestHost): Promise<GuestInstance> {
    let instance: CoreInstance | undefined;
    const made = () => instance as CoreInstance;
    const calls = this.#calls.map(name => [name, new jspi.Suspending((pointer, length) => made().ask(name, pointer, length))]);
    const log = (pointer: number, length: number) => host.log(() => made().view(pointer, Math.min(length >>> 0, host.maxOutput)), length);
    const imports = { platform: { ...Object.fromEntries(calls), log }, env: { abort: () => host.abort() } };
    const { exports } = await WebAssembly.instantiate(this.#module, imports as WebAssembly.Imports);
    return (instance = new CoreInstance(exports as Exports, host, this.#askForMore));
  }
}

class CoreInstance implements GuestInstance {
  readonly #exports: Exports;
  readonly #host: GuestHost;
  readonly #askForMore: () => void;

  constructor(exports: Exports, host: GuestHost, askForMore: () => void) {
    [this.#exports, this.#host, this.#askForMore] = [exports, host, askForMore];
  }

  sliced(number: number): boolean {
    const table = this.#exports['$rt.slice'] as WebAssembly.Table | undefined;
    table?.set(0, this.#askForMore);
    if (table) (this.#exports['$rt.guest'] as WebAssembly.Global<'i32'>).value = number;
    return table !== undefined;
  }

  get fuel(): WebAssembly.Global<'i64'> {
    return this.#exports['$rt.fuel'] as WebAssembly.Global<'i64'>;
  }

  get depth(): WebAssembly.Global<'i32'> {
    return this.#exports['$rt.depth'] as WebAssembly.Global<'i32'>;
  }

  get memory(): WebAssembly.Memory | undefined {
    return this.#exports.memory instanceof WebAssembly.Memory ? this.#exports.memory : undefined;
  }

  async call(name: string, input: Uint8Array): Promise<Uint8Array> {
    for (const first of [this.#exports['$rt.start'], this.#exports['_initialize']]) if (first) await jspi.promising(first as () => void)();
    const pointer = this.#write(input);
    return this.#bytes(await jspi.promising(this.#exports[name] as Hook)(pointer, input.length));
  }

  ask(name: string, pointer: number, length: number): Promise<bigint> {
    const put = (answer: Uint8Array) => (BigInt(this.#write(answer)) << 32n) | BigInt(answer.length);
    return this.#host.ask(name, () => this.view(pointer, length >>> 0), length >>> 0, put, 0n);
  }

  view(pointer: number, length: number): Uint8Array {
    const { buffer } = this.#exports.memory;
    if (pointer >>> 0 > buffer.byteLength || (pointer >>> 0) + length > buffer.byteLength)
      throw this.#host.fail('trap', 'The guest named bytes outside its memory.');
    return new Uint8Array(buffer, pointer >>> 0, length);
  }

  #write(bytes: Uint8Array): number {
    const pointer = this.#host.whole(() => this.#exports.alloc(bytes.length)) >>> 0;
    this.view(pointer, bytes.length).set(bytes);
    return pointer;
  }

  #bytes(packed: bigint): Uint8Array {
    if (typeof packed !== 'bigint') throw this.#host.fail('trap', 'The hook gave no i64.');
    const [pointer, length] = [Number((packed >> 32n) & 0xffffffffn), Number(packed & 0xffffffffn)];
    const { maxOutput } = this.#host;
    if (length > maxOutput) throw this.#host.fail('trap', `The result has ${length} bytes, at most ${maxOutput} are taken.`);
    return Uint8Array.from(this.view(pointer, length));
  }
}
