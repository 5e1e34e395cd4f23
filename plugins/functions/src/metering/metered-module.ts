import { ByteReader, joined, leb, ModuleFault, sleb } from './byte-reader.ts';
import { FunctionMeter, type MeterGlobals } from './function-meter.ts';
import type { Feature } from './instruction.ts';
import { type ImportedName, type Limits, ModuleSections, SECTION, type Signature } from './module-sections.ts';
import { withSharedCounters } from './shared-counters.ts';
import { CAPS, holdFunction } from './static-caps.ts';

export interface MeterOptions {
  /** Most pages of each memory; what the module says when absent. */
  readonly pages?: number;
  /** Most entries of each table. */
  readonly entries?: number;
  /** Fuel before anybody sets it. */
  readonly fuel?: bigint;
  readonly depth?: number;
  readonly refused?: ReadonlySet<Feature>;
  /** Whether what would be slow to compile is refused. */
  readonly capped?: boolean;
  /** Whether fuel and depth are imported, as modules have them that pay together. */
  readonly shared?: boolean;
  /**
   * Whether it asks for more where its fuel is used up, by the table `$rt.slice`: fuel is then given in slices, and others run between
   * them.
   */
  readonly sliced?: boolean;
}
export interface Metered {
  readonly bytes: Uint8Array;
  readonly features: ReadonlySet<Feature>;
  readonly imports: readonly ImportedName[];
  readonly exports: readonly { readonly name: string; readonly kind: number }[];
  /** Whether there is a start function: the maker of the instance calls it, after it gave fuel. */
  readonly starts: boolean;
}

/** Fuel is a function of the module's bytes and of this: another number where the same input would be charged otherwise. */
export const METER_VERSION = 1;
export const RESERVED = '$rt.';
/** Words of stack that the frames of one execution may take together. */
export const DEPTH = 60_000;
/** Refused unless somebody says otherwise: what fuel does not bound, or what differs from machine to machine. */
export const REFUSED: ReadonlySet<Feature> = new Set(['threads', 'relaxed-simd', 'gc', 'multi-memory']);
/** The type of what asks for more fuel: it takes who asks, and gives nothing. */
const ASKS = [0x60, 1, 0x7f, 0];
const ORDER = [1, 2, 3, 4, 5, 13, 6, 7, 9, 12, 10, 11];

/**
 * Rewrites a module so that what it does is counted and bounded: fuel and depth are globals of its own, exported under a reserved prefix.
 * Nothing that the module numbers is numbered anew: what is added stands at the end of its space. Throws {@link ModuleFault}. The engine is
 * to be asked first whether the bytes are valid, for a rewrite may hide a fault.
 */
export function meter(
  bytes: Uint8Array,
  { pages, entries, fuel = 0n, depth = DEPTH, refused = REFUSED, capped = true, shared = false, sliced = false }: MeterOptions = {},
): Metered {
  const own = new ModuleSections(bytes);
  const sections = shared ? new ModuleSections(withSharedCounters(own)) : own;
  const { spans, exports, imports, functions, types } = sections;
  if (capped) {
    if (functions.length > CAPS.functions)
      throw new ModuleFault('too_complex', `The module has ${functions.length} functions, at most ${CAPS.functions} are taken.`);
    if (exports.length > CAPS.exports || imports.length > CAPS.imports)
      throw new ModuleFault('too_complex', `At most ${CAPS.imports} imports and ${CAPS.exports} exports are taken.`);
  }
  if (exports.some(({ name }) => name.startsWith(RESERVED)))
    throw new ModuleFault('reserved_export', `Exports that begin with ${RESERVED} are the runtime's own.`);
  const meters = bodiesOf(sections).map(({ from, to }, index) => {
    const signature = types[functions[index] as number] as Signature;
    return new FunctionMeter(sections, signature, new ByteReader(sections.bytes, from, to));
  });
  if (capped) {
    let sum = 0;
    for (const [index, { size }] of meters.entries()) {
      holdFunction(index + sections.importedFunctions, size);
      sum += size.locals * size.blocks;
    }
    if (sum > CAPS.moduleLocalsByBlocks) throw new ModuleFault('too_complex', 'The functions together have too many locals and blocks.');
  }
  for (const feature of sections.features)
    if (refused.has(feature)) throw new ModuleFault('feature_refused', `The module uses ${feature}, which is not taken here.`);
  const added = new AddedTypes(sections);
  const first = shared ? own.importedGlobals : sections.globals;
  const slice = sliced
    ? { table: sections.wideTables.length, type: added.number(ASKS), guest: sections.globals + (shared ? 0 : 2) }
    : undefined;
  const globals = { fuel: first, depth: first + 1, slice, typeOf: (signature: Signature) => added.numberOf(signature) };
  const code = meters.map(each => each.written(globals));
  const written = new Map<number, Uint8Array>();
  for (const [id, { from, to }] of spans) written.set(id, sections.bytes.subarray(from, to));
  if (code.length > 0) written.set(SECTION.code, joined([leb(code.length), ...code]));
  if (added.entries.length > 0) written.set(SECTION.type, extended(sections, SECTION.type, added.entries));
  const counters = [
    [0x7e, 1, 0x42, ...sleb(fuel), 0x0b],
    [0x7f, 1, 0x41, ...sleb(depth), 0x0b],
  ];
  const more = [...(shared ? [] : counters), ...(slice ? [[0x7f, 1, 0x41, 0, 0x0b]] : [])];
  if (more.length > 0) written.set(SECTION.global, extended(sections, SECTION.global, more));
  written.set(SECTION.export, extended(sections, SECTION.export, addedExports(sections, globals)));
  written.delete(SECTION.start);
  if (pages !== undefined) bound(sections, written, SECTION.memory, sections.ownMemories, pages);
  if (entries !== undefined) bound(sections, written, SECTION.table, sections.ownTables, entries);
  if (slice) written.set(SECTION.table, withEntry(written.get(SECTION.table), [0x70, 1, 1, 1]));
  const parts = ORDER.flatMap(id => {
    const content = written.get(id);
    return content === undefined ? [] : [[id, ...leb(content.length)], content];
  });
  return {
    bytes: joined([bytes.subarray(0, 8), ...parts]),
    features: sections.features,
    imports: own.imports,
    exports,
    starts: sections.start !== undefined,
  };
}

function bodiesOf(sections: ModuleSections): { from: number; to: number }[] {
  const reader = sections.reader(SECTION.code);
  if (!reader) return [];
  return Array.from({ length: reader.u32() }, () => {
    const length = reader.u32();
    const from = reader.at;
    reader.skip(length);
    return { from, to: reader.at };
  });
}

/** A section's content with one entry more. */
function withEntry(content: Uint8Array | undefined, entry: readonly number[]): Uint8Array {
  const reader = content && new ByteReader(content);
  const count = reader?.u32() ?? 0;
  return joined([leb(count + 1), reader ? reader.bytes.subarray(reader.at) : [], entry]);
}

function addedExports({ start }: ModuleSections, { fuel, depth, slice }: Pick<MeterGlobals, 'fuel' | 'depth' | 'slice'>): number[][] {
  const entry = (name: string, kind: number, index: number) => [
    ...leb(RESERVED.length + name.length),
    ...Buffer.from(RESERVED + name),
    kind,
    ...leb(index),
  ];
  const asking = slice ? [entry('slice', 1, slice.table), entry('guest', 3, slice.guest)] : [];
  return [entry('fuel', 3, fuel), entry('depth', 3, depth), ...asking, ...(start === undefined ? [] : [entry('start', 0, start)])];
}

/** A section with more entries at its end. */
function extended(sections: ModuleSections, id: number, entries: readonly (readonly number[])[]): Uint8Array {
  const reader = sections.reader(id);
  const count = reader?.u32() ?? 0;
  return joined([leb(count + entries.length), reader ? sections.bytes.subarray(reader.at, reader.end) : [], ...entries]);
}

/** Types that give what functions give and take nothing: a block around the body has one. */
class AddedTypes {
  readonly entries: number[][] = [];
  readonly #first: number;
  readonly #numbers = new Map<string, number>();

  constructor({ types }: ModuleSections) {
    this.#first = types.length;
  }

  numberOf({ results, resultCount }: Signature): number {
    return this.number([0x60, 0, ...leb(resultCount), ...results]);
  }

  number(type: readonly number[]): number {
    const name = type.join();
    let number = this.#numbers.get(name);
    if (number === undefined) {
      this.#numbers.set(name, (number = this.#first + this.entries.length));
      this.entries.push([...type]);
    }
    return number;
  }
}

/** Puts a bound on memories or tables: growing past it fails as the specification has it; beginning past it is refused. */
function bound(sections: ModuleSections, written: Map<number, Uint8Array>, id: number, own: readonly Limits[], most: number): void {
  const section = sections.spans.get(id);
  if (!section) return;
  const parts: (Uint8Array | number[])[] = [];
  let at = section.from;
  for (const { flags, minimum, maximum, from, to } of own) {
    if (minimum > BigInt(most))
      throw new ModuleFault(
        'too_large',
        `The module begins with ${minimum} ${id === SECTION.memory ? 'pages of memory' : 'table entries'}, at most ${most} are given.`,
      );
    const limit = maximum === undefined || maximum > BigInt(most) ? BigInt(most) : maximum;
    parts.push(sections.bytes.subarray(at, from), [
      flags | 1,
      ...leb(minimum),
      ...leb(limit),
      ...(flags & 8 ? leb(pageSizeOf(sections, from, to)) : []),
    ]);
    at = to;
  }
  written.set(id, joined([...parts, sections.bytes.subarray(at, section.to)]));
}

function pageSizeOf(sections: ModuleSections, from: number, to: number): number {
  const reader = new ByteReader(sections.bytes, from, to);
  const flags = reader.byte();
  reader.u64();
  if (flags & 1) reader.u64();
  return reader.u32();
}
