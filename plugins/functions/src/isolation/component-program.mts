import { Script } from 'node:vm';
import type { GuestHost, GuestInstance, GuestProgram } from './guest.mts';
import type { Program } from './wire.mts';

type Instantiate = (
  core: (name: string) => WebAssembly.Module,
  imports: Record<string, { default: (text: string) => unknown }>,
  make: (module: WebAssembly.Module, imports?: WebAssembly.Imports) => WebAssembly.Instance,
) => Promise<Record<string, unknown>> | Record<string, unknown>;

/** Depth of all frames of one execution together, as a module has it alone. */
const DEPTH = 60_000;
const utf8 = new TextEncoder();

/** A component, as jco made code and core modules of it. Its core modules are metered and pay from one purse. */
export class ComponentProgram implements GuestProgram {
  readonly #cores: ReadonlyMap<string, WebAssembly.Module>;
  readonly #instantiate: Instantiate;
  readonly #imports: readonly string[];

  constructor({ glue, cores, imports }: Extract<Program, { kind: 'component' }>) {
    this.#cores = new Map(cores.map(([name, bytes]) => [name, new WebAssembly.Module(bytes as Uint8Array<ArrayBuffer>)]));
    this.#imports = imports;
    // A script, where jco writes a module: modules are never collected. All state is within `instantiate`.
    const text = glue.replaceAll('import.meta.url', "''").replaceAll(/^export /gm, '');
    this.#instantiate = new Script(`(() => { ${text}\n return instantiate; })()`, {
      filename: 'component.js',
    }).runInThisContext() as Instantiate;
  }

  async instantiate(host: GuestHost): Promise<GuestInstance> {
    const instance = new ComponentInstance();
    host.begin(instance);
    const give = (name: string) => (name === 'log' ? logOf(host) : callOf(host, name));
    const imports = Object.fromEntries(this.#imports.map(name => [name, { default: give(name) }]));
    const make = (module: WebAssembly.Module, given: WebAssembly.Imports = {}) =>
      instance.add(new WebAssembly.Instance(module, { ...given, $rt: instance.counters }));
    instance.exports = await this.#instantiate(name => this.#cores.get(name) as WebAssembly.Module, imports, make);
    return instance;
  }
}

const logOf = (host: GuestHost) => (line: string) => host.log(() => utf8.encode(line), line.length);
const callOf = (host: GuestHost, name: string) => (text: string) => {
  const body = utf8.encode(text);
  return host.ask(
    name,
    () => body,
    body.length,
    answer => new TextDecoder().decode(answer),
    '',
  );
};

class ComponentInstance implements GuestInstance {
  readonly fuel = new WebAssembly.Global({ value: 'i64', mutable: true }, 0n);
  readonly depth = new WebAssembly.Global({ value: 'i32', mutable: true }, DEPTH);
  memory: WebAssembly.Memory | undefined;
  exports: Record<string, unknown> = {};

  get counters(): WebAssembly.ModuleImports {
    return { fuel: this.fuel, depth: this.depth };
  }

  sliced(): boolean {
    return false;
  }

  /** An instance of one of its modules, which starts as it would have started by itself. */
  add(instance: WebAssembly.Instance): WebAssembly.Instance {
    for (const each of Object.values(instance.exports)) if (each instanceof WebAssembly.Memory) this.memory = each;
    (instance.exports['$rt.start'] as (() => void) | undefined)?.();
    return instance;
  }

  async call(name: string, input: Uint8Array): Promise<Uint8Array> {
    const hook = this.exports[name.replaceAll(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())] as
      | ((input: string) => unknown)
      | undefined;
    if (typeof hook !== 'function') throw new Error(`The component has no function ${name}.`);
    const output = await hook(new TextDecoder().decode(input));
    if (typeof output !== 'string') throw new Error('The hook gave no string.');
    return utf8.encode(output);
  }
}
