import { ByteReader, joined, leb, ModuleFault } from '../metering/byte-reader.ts';
import { ModuleSections } from '../metering/module-sections.ts';

const SECTION = { custom: 0, coreModule: 1, coreInstance: 2, alias: 6, type: 7, canon: 8, import: 10, export: 11 } as const;
const PREAMBLE = Buffer.from([0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0]);
const [STRING, FUNCTION, INTERFACE] = [0x73, 0x40, 0x42];
/** jco pastes these names into code as they are: nothing else may stand in them (facts on WebAssembly, section 2). */
const CORE_NAME = /^[A-Za-z0-9_.:/@#[\]$-]*$/;
/** What a component calls what it takes and gives: plain names in lower case. */
const PLAIN_NAME = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;
const MAX_NAME = 256;
const MAX_INSTANCES = 64;
const MAX_MODULES = 16;

/** Whether the bytes begin as a component does. */
export const isComponent = (bytes: Uint8Array): boolean => Buffer.compare(bytes.subarray(0, 8), PREAMBLE) === 0;

/**
 * A component of the world that this service has (`function.wit`): plain functions from a string to a string go in and out, and core
 * modules make them. Whatever else a component can be is refused before any other program reads it: nested components, instances,
 * resources, streams, other types, and every name that is more than letters. Throws {@link ModuleFault}.
 */
export class ComponentSections {
  readonly modules: ModuleSections[] = [];
  readonly imports: string[] = [];
  readonly exports: string[] = [];
  /** The component without custom sections, its own and its modules': names in those are for debuggers. */
  readonly bytes: Uint8Array;
  /** Core modules by the order in which they are made instances of. */
  readonly #instances: number[] = [];

  constructor(bytes: Uint8Array) {
    if (!isComponent(bytes)) throw new ModuleFault('not_component', 'The bytes are no WebAssembly component.');
    const parts: (Uint8Array | readonly number[])[] = [PREAMBLE];
    const reader = new ByteReader(bytes, PREAMBLE.length);
    while (!reader.done) {
      const id = reader.byte();
      const length = reader.u32();
      const from = reader.at;
      reader.skip(length);
      if (id === SECTION.custom) continue;
      let content = bytes.subarray(from, reader.at);
      if (id === SECTION.coreModule) content = this.#module(content);
      else this.#section(id, new ByteReader(content));
      parts.push([id, ...leb(content.length)], content);
    }
    this.bytes = joined(parts);
    this.#hold();
  }

  #hold(): void {
    if (this.modules.length > MAX_MODULES || this.#instances.length > MAX_INSTANCES)
      throw new ModuleFault('too_complex', `A component has at most ${MAX_MODULES} core modules and ${MAX_INSTANCES} instances of them.`);
    const memories = this.#instances.reduce((sum, number) => sum + (this.modules[number]?.ownMemories.length ?? 0), 0);
    if (memories > 1)
      throw new ModuleFault('feature_refused', `The instances of the component have ${memories} memories; one is taken here.`);
    const tables = this.#instances.reduce((sum, number) => sum + (this.modules[number]?.ownTables.length ?? 0), 0);
    if (tables > MAX_INSTANCES)
      throw new ModuleFault('too_complex', `The instances of the component have ${tables} tables, at most ${MAX_INSTANCES} are taken.`);
  }

  /** A core module without its custom sections. */
  #module(bytes: Uint8Array): Uint8Array {
    const reader = new ByteReader(bytes, 8);
    const parts: (Uint8Array | readonly number[])[] = [bytes.subarray(0, 8)];
    while (!reader.done) {
      const at = reader.at;
      const id = reader.byte();
      reader.skip(reader.u32());
      if (id !== SECTION.custom) parts.push(bytes.subarray(at, reader.at));
    }
    const sections = new ModuleSections(joined(parts));
    for (const { module, name } of sections.imports) for (const each of [module, name]) requireName(each, CORE_NAME);
    for (const { name } of sections.exports) requireName(name, CORE_NAME);
    this.modules.push(sections);
    return sections.bytes;
  }

  #section(id: number, reader: ByteReader): void {
    const read = this.#entries[id];
    if (!read) throw refused(`a section of kind ${id}`);
    for (let count = reader.u32(); count > 0; count--) read(reader);
    if (!reader.done) throw new ModuleFault('malformed', `A section of kind ${id} is longer than what is in it.`);
  }

  readonly #entries: Readonly<Record<number, (reader: ByteReader) => void>> = {
    [SECTION.coreInstance]: reader => {
      const made = reader.byte() === 0;
      if (made) this.#instances.push(reader.u32());
      for (let count = reader.u32(); count > 0; count--) {
        requireName(reader.name(), CORE_NAME);
        reader.skip(1);
        reader.skipLeb();
      }
    },
    [SECTION.alias]: reader => {
      if (reader.byte() !== 0 || reader.byte() > 3 || reader.byte() !== 1)
        throw refused('an alias of another thing than an export of a core instance');
      reader.skipLeb();
      requireName(reader.name(), CORE_NAME);
    },
    [SECTION.type]: reader => {
      const form = reader.byte();
      if (form !== FUNCTION) throw refused(form === INTERFACE ? 'an interface, as WASI has them' : 'a type that is no plain function');
      const parameters = reader.u32();
      for (let count = parameters; count > 0; count--) {
        requireName(reader.name(), PLAIN_NAME);
        requireString(reader);
      }
      if (parameters !== 1) throw refused(`a function of ${parameters} values`);
      if (reader.byte() === 0) requireString(reader);
      else if (reader.byte() !== 0) throw refused('a function with named results');
    },
    [SECTION.canon]: reader => {
      const lifts = reader.byte() === 0;
      if (this.#canonical(reader)) throw refused('more than functions that go in and out');
      reader.skipLeb();
      for (let count = reader.u32(); count > 0; count--) {
        const option = reader.byte();
        if (![0, 3, 4, 5].includes(option)) throw refused(`the canonical option ${option}`);
        if (option !== 0) reader.skipLeb();
      }
      if (lifts) reader.skipLeb();
    },
    [SECTION.import]: reader => {
      this.imports.push(this.#externName(reader));
      if (reader.byte() !== 1) throw refused('an import that is no function');
      reader.skipLeb();
    },
    [SECTION.export]: reader => {
      this.exports.push(this.#externName(reader));
      if (reader.byte() !== 1) throw refused('an export that is no function');
      reader.skipLeb();
      if (reader.byte() === 0) return;
      if (reader.byte() !== 1) throw refused('an export that is no function');
      reader.skipLeb();
    },
  };

  /** Whether a canonical definition is other than lift or lower, whose second byte is zero; the first was read. */
  #canonical(reader: ByteReader): boolean {
    return reader.bytes[reader.at - 1]! > 1 || reader.byte() !== 0;
  }

  #externName(reader: ByteReader): string {
    if (reader.byte() > 1) throw refused('a name with attributes');
    const name = reader.name();
    if (!PLAIN_NAME.test(name) && CORE_NAME.test(name) && name.length <= MAX_NAME)
      throw new ModuleFault(
        'import_refused',
        `${name} is not offered or asked for: a component imports and exports plain functions of the world of functions, and nothing else. There is no WASI.`,
      );
    requireName(name, PLAIN_NAME);
    return name;
  }
}

const refused = (what: string): ModuleFault =>
  new ModuleFault(
    'component_refused',
    `The component has ${what}. It may have functions from a string to a string, in and out, and core modules that make them.`,
  );

function requireString(reader: ByteReader): void {
  if (reader.byte() !== STRING) throw refused('a function of something else than strings');
}

/** Throws for a name that could be more than a name in code that is made of it. */
function requireName(name: string, pattern: RegExp): void {
  if (name.length <= MAX_NAME && pattern.test(name)) return;
  const shown = JSON.stringify(name.slice(0, 60));
  throw new ModuleFault(
    'name_refused',
    `The name ${shown} has other characters than names of a component may have here, or more than ${MAX_NAME}.`,
  );
}
