import { ByteReader, ModuleFault } from './byte-reader.ts';
import { blank, type Feature, readInstruction, skipHeapType, skipValueType } from './instruction.ts';

/** A function's type: how many values it takes, and the bytes of what it gives. */
export interface Signature {
  readonly parameters: number;
  readonly results: Uint8Array;
  readonly resultCount: number;
}
export interface Limits {
  readonly flags: number;
  readonly minimum: bigint;
  readonly maximum: bigint | undefined;
  /** Where the limits stand in the module. */
  readonly from: number;
  readonly to: number;
}
export interface ImportedName {
  readonly module: string;
  readonly name: string;
  readonly kind: number;
}

export const SECTION = {
  custom: 0,
  type: 1,
  import: 2,
  function: 3,
  table: 4,
  memory: 5,
  global: 6,
  export: 7,
  start: 8,
  element: 9,
  code: 10,
  data: 11,
  dataCount: 12,
  tag: 13,
} as const;

/**
 * The parts of a module that metering reads, each where it stands. Its maker has asked the engine first whether the module is valid.
 */
export class ModuleSections {
  readonly bytes: Uint8Array;
  readonly spans = new Map<number, { readonly from: number; readonly to: number }>();
  readonly features = new Set<Feature>();
  readonly types: (Signature | undefined)[] = [];
  /** Entries of the type section: a group of types counts once. */
  typeEntries = 0;
  readonly imports: ImportedName[] = [];
  /** Type of each function that is defined here. */
  readonly functions: number[] = [];
  importedFunctions = 0;
  importedGlobals = 0;
  globals = 0;
  readonly exports: { readonly name: string; readonly kind: number; readonly index: number }[] = [];
  start: number | undefined;
  /** Whether each memory and table counts in 64 bits, imported ones first. */
  readonly wideMemories: boolean[] = [];
  readonly wideTables: boolean[] = [];
  readonly ownMemories: Limits[] = [];
  readonly ownTables: Limits[] = [];

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    const reader = new ByteReader(bytes, 8);
    if (bytes.length < 8 || new DataView(bytes.buffer, bytes.byteOffset).getUint32(0) !== 0x0061736d)
      throw new ModuleFault('not_wasm', 'The bytes are no WebAssembly module.');
    if (new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true) !== 1)
      throw new ModuleFault('not_core_module', 'Only core modules of version 1 are taken; a component is another format.');
    while (!reader.done) {
      const id = reader.byte();
      const length = reader.u32();
      const from = reader.at;
      reader.skip(length);
      if (id === SECTION.custom) continue;
      this.spans.set(id, { from, to: reader.at });
    }
    this.#read();
  }

  reader(id: number): ByteReader | undefined {
    const span = this.spans.get(id);
    return span && new ByteReader(this.bytes, span.from, span.to);
  }

  #read(): void {
    const each = (id: number, read: (reader: ByteReader) => void) => {
      const reader = this.reader(id);
      if (reader) for (let count = reader.u32(); count > 0; count--) read(reader);
    };
    this.typeEntries = this.reader(SECTION.type)?.u32() ?? 0;
    each(SECTION.type, reader => this.#readTypes(reader));
    each(SECTION.import, reader => this.#readImport(reader));
    each(SECTION.function, reader => void this.functions.push(reader.u32()));
    each(SECTION.table, reader => this.#readTable(reader));
    each(SECTION.memory, reader => {
      const limits = this.#readLimits(reader);
      this.ownMemories.push(limits);
      this.wideMemories.push((limits.flags & 4) !== 0);
    });
    this.importedGlobals = this.globals;
    this.globals += this.reader(SECTION.global)?.u32() ?? 0;
    each(SECTION.export, reader => void this.exports.push({ name: reader.name(), kind: reader.byte(), index: reader.u32() }));
    this.start = this.reader(SECTION.start)?.u32();
    if (this.wideMemories.length > 1) this.features.add('multi-memory');
    if (this.spans.has(SECTION.tag)) this.features.add('exceptions');
  }

  #readTypes(reader: ByteReader): void {
    if (reader.peek() !== 0x4e) return this.#readSubType(reader);
    this.features.add('gc');
    reader.skip(1);
    for (let count = reader.u32(); count > 0; count--) this.#readSubType(reader);
  }

  #readSubType(reader: ByteReader): void {
    if (reader.peek() === 0x50 || reader.peek() === 0x4f) {
      this.features.add('gc');
      reader.skip(1);
      for (let count = reader.u32(); count > 0; count--) reader.skipLeb();
    }
    let form = reader.byte();
    if (form === 0x65) form = reader.byte();
    if (form === 0x60) return void this.types.push(readSignature(reader));
    this.features.add('gc');
    const field = () => {
      skipValueType(reader);
      reader.skip(1);
    };
    if (form === 0x5e) field();
    else if (form === 0x5f) for (let count = reader.u32(); count > 0; count--) field();
    else throw new ModuleFault('unknown_type', `The type 0x${form.toString(16)} is not known here.`);
    this.types.push(undefined);
  }

  #readImport(reader: ByteReader): void {
    const [module, name, kind] = [reader.name(), reader.name(), reader.byte()];
    this.imports.push({ module, name, kind });
    if (kind === 0) {
      reader.skipLeb();
      this.importedFunctions += 1;
    } else if (kind === 1) {
      skipValueType(reader);
      this.wideTables.push((this.#readLimits(reader).flags & 4) !== 0);
    } else if (kind === 2) this.wideMemories.push((this.#readLimits(reader).flags & 4) !== 0);
    else if (kind === 3) {
      skipValueType(reader);
      reader.skip(1);
      this.globals += 1;
    } else if (kind === 4) {
      reader.skip(1);
      reader.skipLeb();
      this.features.add('exceptions');
    } else throw new ModuleFault('unknown_import', `An import of kind ${kind} is not known here.`);
  }

  #readTable(reader: ByteReader): void {
    const initial = reader.peek() === 0x40;
    if (initial) reader.skip(2);
    if (reader.byte() === 0x63 || this.bytes[reader.at - 1] === 0x64) skipHeapType(reader);
    const limits = this.#readLimits(reader);
    this.ownTables.push(limits);
    this.wideTables.push((limits.flags & 4) !== 0);
    const instruction = blank();
    if (initial)
      do readInstruction(reader, instruction);
      while (instruction.kind !== 'end');
  }

  #readLimits(reader: ByteReader): Limits {
    const from = reader.at;
    const flags = reader.byte();
    if (flags & 2) this.features.add('threads');
    const minimum = reader.u64();
    const maximum = flags & 1 ? reader.u64() : undefined;
    if (flags & 8) reader.skipLeb();
    return { flags, minimum, maximum, from, to: reader.at };
  }
}

function readSignature(reader: ByteReader): Signature {
  const parameters = reader.u32();
  for (let count = parameters; count > 0; count--) skipValueType(reader);
  const resultCount = reader.u32();
  const from = reader.at;
  for (let count = resultCount; count > 0; count--) skipValueType(reader);
  return { parameters, resultCount, results: reader.bytes.subarray(from, reader.at) };
}
