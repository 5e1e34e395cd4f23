import { ComponentSections, isComponent } from '../components/component-sections.ts';
import { ModuleFault } from '../metering/byte-reader.ts';
import { meter, type Metered } from '../metering/metered-module.ts';

/** Entries that a table may have. */
export const TABLE_ENTRIES = 10_000;
export const PAGE_BYTES = 65_536;
/** The engine's ceiling for every module, whatever an environment allows. */
export const CEILING_PAGES = 4_096;
/** Where the runtimes of some languages say that an assertion failed. */
const ABORT = 'env.abort';

export interface Inspected {
  readonly imports: readonly string[];
  readonly exports: readonly string[];
}

/**
 * Whether bytes are a module or a component that this service takes: valid, metered, with the exports and imports of the protocol
 * (G-FUNC-05). Throws {@link ModuleFault}.
 */
export function inspect(bytes: Uint8Array<ArrayBuffer>, hooks: readonly string[], pages: number): Inspected {
  return isComponent(bytes) ? inspectComponent(bytes, hooks, pages) : inspectModule(bytes, hooks, pages);
}

function inspectComponent(bytes: Uint8Array<ArrayBuffer>, hooks: readonly string[], pages: number): Inspected {
  const { imports, exports, modules } = new ComponentSections(bytes);
  for (const module of modules) metered(module.bytes as Uint8Array<ArrayBuffer>, pages, true);
  for (const hook of hooks)
    if (!exports.includes(hook)) throw new ModuleFault('export_missing', `The component exports no function ${hook}.`);
  return { imports, exports };
}

function inspectModule(bytes: Uint8Array<ArrayBuffer>, hooks: readonly string[], pages: number): Inspected {
  const { imports, exports } = metered(bytes, pages);
  for (const { module, name, kind } of imports) {
    const fits = (module === 'platform' || `${module}.${name}` === ABORT) && kind === 0;
    if (!fits)
      throw new ModuleFault(
        'import_refused',
        `The import ${module}.${name} is not offered: functions of the module platform are, and nothing else. There is no WASI.`,
      );
  }
  const needs = (name: string, kind: number, what: string) => {
    if (!exports.some(each => each.name === name && each.kind === kind))
      throw new ModuleFault('export_missing', `The module exports no ${what} ${name}.`);
  };
  needs('memory', 2, 'memory');
  needs('alloc', 0, 'function');
  for (const hook of hooks) needs(hook, 0, 'function');
  return { imports: imports.map(({ module, name }) => `${module}.${name}`), exports: exports.map(({ name }) => name) };
}

/**
 * The module as it is run, with fuel in slices; of a component with `shared`, where code between its modules cannot wait. The engine is
 * asked whether it is valid, for a rewrite may hide a fault.
 */
export function metered(bytes: Uint8Array<ArrayBuffer>, pages: number, shared = false): Metered {
  const head = bytes.subarray(0, 4);
  if (Buffer.compare(head, Buffer.from('\0asm')) !== 0) throw new ModuleFault('not_wasm', 'The bytes are no WebAssembly module.');
  const made = meter(bytes, { pages, entries: TABLE_ENTRIES, shared, sliced: !shared });
  if (!WebAssembly.validate(bytes)) throw new ModuleFault('malformed', 'The module is not valid.');
  return made;
}
