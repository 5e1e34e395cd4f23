import { type ByteReader, joined, leb, ModuleFault } from './byte-reader.ts';
import { blank, readInstruction, skipHeapType, skipValueType } from './instruction.ts';
import { type ModuleSections, SECTION } from './module-sections.ts';

/** Where the counters that several modules share are imported from. */
export const SHARED = '$rt';
const ADDED = 2;
const [GLOBAL_GET, GLOBAL_SET, FUNCREF_TABLE_WITH_VALUE] = [0x23, 0x24, 0x40];

/**
 * The module with two more imported globals, fuel and depth, behind those it has: the modules of one component pay from one purse. What it
 * defines itself moves up by two, and every place that names a global is written anew.
 */
export function withSharedCounters(sections: ModuleSections): Uint8Array {
  const { bytes, spans, imports } = sections;
  if (imports.some(({ module }) => module === SHARED))
    throw new ModuleFault('reserved_import', `The import module ${SHARED} is the runtime's own.`);
  const moved = new MovedGlobals(bytes, sections.importedGlobals);
  const named = (name: string) => [...leb(name.length), ...Buffer.from(name)];
  const counters = [...named(SHARED), ...named('fuel'), 3, 0x7e, 1, ...named(SHARED), ...named('depth'), 3, 0x7f, 1];
  const parts: (Uint8Array | readonly number[])[] = [bytes.subarray(0, 8)];
  const put = (id: number, content: Uint8Array) => void parts.push([id, ...leb(content.length)], content);
  const importing = () => {
    const reader = sections.reader(SECTION.import);
    const count = reader?.u32() ?? 0;
    put(SECTION.import, joined([leb(count + ADDED), reader ? bytes.subarray(reader.at, reader.end) : [], counters]));
  };
  if (!spans.has(SECTION.import) && !spans.has(SECTION.type)) importing();
  for (const [id, { from, to }] of spans) {
    if (id === SECTION.import) importing();
    else {
      const reader = sections.reader(id) as ByteReader;
      put(id, id === SECTION.code ? moved.code(reader) : (moved.section(id, reader) ?? bytes.subarray(from, to)));
    }
    if (id === SECTION.type && !spans.has(SECTION.import)) importing();
  }
  return joined(parts);
}

/** Writes sections anew in which globals are named. */
class MovedGlobals {
  readonly #bytes: Uint8Array;
  readonly #imported: number;
  #edits: { readonly from: number; readonly to: number; readonly number: number }[] = [];

  constructor(bytes: Uint8Array, imported: number) {
    [this.#bytes, this.#imported] = [bytes, imported];
  }

  code(reader: ByteReader): Uint8Array {
    const parts: (Uint8Array | readonly number[])[] = [];
    const count = reader.u32();
    for (let left = count; left > 0; left--) {
      const length = reader.u32();
      const [from, to] = [reader.at, reader.at + length];
      for (let groups = reader.u32(); groups > 0; groups--) {
        reader.u32();
        skipValueType(reader);
      }
      while (reader.at < to) this.#instruction(reader);
      const body = this.#written(from, to);
      parts.push(leb(body.length), body);
    }
    return joined([leb(count), ...parts]);
  }

  /** Nothing for a section that names no globals. */
  section(id: number, reader: ByteReader): Uint8Array | undefined {
    const entry = this.#entries[id];
    if (!entry) return undefined;
    const from = reader.at;
    for (let count = reader.u32(); count > 0; count--) entry(reader);
    return this.#written(from, reader.end);
  }

  readonly #entries: Readonly<Record<number, (reader: ByteReader) => void>> = {
    [SECTION.global]: reader => {
      skipValueType(reader);
      reader.skip(1);
      this.#expression(reader);
    },
    [SECTION.export]: reader => {
      reader.name();
      if (reader.byte() === 3) this.#named(reader);
      else reader.skipLeb();
    },
    [SECTION.table]: reader => {
      const valued = reader.peek() === FUNCREF_TABLE_WITH_VALUE;
      if (valued) reader.skip(2);
      skipValueType(reader);
      const flags = reader.byte();
      reader.u64();
      if (flags & 1) reader.u64();
      if (valued) this.#expression(reader);
    },
    [SECTION.element]: reader => this.#element(reader),
    [SECTION.data]: reader => {
      const kind = reader.u32();
      if (kind === 2) reader.skipLeb();
      if (kind !== 1) this.#expression(reader);
      reader.skip(reader.u32());
    },
  };

  /**
   * A segment of a table: bit 0 is passive or declared, bit 1 names a table or says declared, bit 2 has expressions in place of numbers.
   */
  #element(reader: ByteReader): void {
    const flags = reader.u32();
    if (flags > 7) throw new ModuleFault('malformed', `An element segment of kind ${flags} is not known here.`);
    const active = (flags & 1) === 0;
    if (active && flags & 2) reader.skipLeb();
    if (active) this.#expression(reader);
    if (flags & 3) {
      if ((flags & 4) === 0) reader.skip(1);
      else if (reader.byte() === 0x63 || this.#bytes[reader.at - 1] === 0x64) skipHeapType(reader);
    }
    for (let count = reader.u32(); count > 0; count--) {
      if (flags & 4) this.#expression(reader);
      else reader.skipLeb();
    }
  }

  #expression(reader: ByteReader): void {
    while (this.#instruction(reader) !== 'end');
  }

  #instruction(reader: ByteReader): string {
    const opcode = reader.peek();
    if (opcode === GLOBAL_GET || opcode === GLOBAL_SET) {
      reader.skip(1);
      this.#named(reader);
      return 'global';
    }
    readInstruction(reader, this.#read);
    return this.#read.kind;
  }
  readonly #read = blank();

  #named(reader: ByteReader): void {
    const from = reader.at;
    const number = reader.u32();
    if (number >= this.#imported) this.#edits.push({ from, to: reader.at, number: number + ADDED });
  }

  #written(from: number, to: number): Uint8Array {
    const parts: (Uint8Array | readonly number[])[] = [];
    let at = from;
    for (const edit of this.#edits) {
      parts.push(this.#bytes.subarray(at, edit.from), leb(edit.number));
      at = edit.to;
    }
    this.#edits = [];
    return joined([...parts, this.#bytes.subarray(at, to)]);
  }
}
