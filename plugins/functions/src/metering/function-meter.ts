import { ByteReader, joined, leb, ModuleFault, sleb } from './byte-reader.ts';
import { blank, type Instruction, readInstruction, skipValueType } from './instruction.ts';
import type { ModuleSections, Signature } from './module-sections.ts';
import type { FunctionSize } from './static-caps.ts';

/** Something to be written before the instruction that stands at `at`. */
interface Edit {
  readonly at: number;
  readonly kind: 'charge' | 'save' | 'reload' | 'leave' | 'land' | 'narrow' | 'wide';
  amount: number;
  readonly checks: boolean;
}
/** Indices that the module gives to what metering adds. */
export interface MeterGlobals {
  readonly fuel: number;
  readonly depth: number;
  /** The number of a type that takes nothing and gives these results. */
  readonly typeOf: (signature: Signature) => number;
  /** Where a function asks for its next slice of fuel, and the global that says who asks; without them it ends where its fuel does. */
  readonly slice?: { readonly table: number; readonly type: number; readonly guest: number } | undefined;
}

const GROW_COST = 1_000;
const EMPTY = 0x40;
const [UNREACHABLE, BLOCK, IF, END, CALL_INDIRECT] = [0x00, 0x02, 0x04, 0x0b, 0x11];
const [LOCAL_GET, LOCAL_SET, LOCAL_TEE, GLOBAL_GET, GLOBAL_SET, I32_CONST, I64_CONST] = [0x20, 0x21, 0x22, 0x23, 0x24, 0x41, 0x42];
const [I64_LT_S, I32_ADD, I32_SUB, I64_SUB, I64_OR, I64_SHR_U, I64_EXTEND_S, I64_EXTEND_U] = [
  0x53, 0x6a, 0x6b, 0x7d, 0x84, 0x88, 0xac, 0xad,
];
const FREE: ReadonlySet<Instruction['kind']> = new Set(['free', 'block', 'loop', 'end', 'else', 'try', 'catch', 'delegate']);

/**
 * One function, rewritten so that it pays for what it does: one unit an instruction, charged at the start of each basic block, kept in a
 * local and written back where somebody else looks at it; asked for at the function's entry and at loops alone. Calls cost depth while they
 * last.
 */
export class FunctionMeter {
  readonly #sections: ModuleSections;
  readonly #signature: Signature;
  readonly #body: ByteReader;
  readonly #from: number;
  readonly #codeFrom: number;
  readonly #locals: number;
  readonly #edits: Edit[] = [];
  #open: Edit | undefined;
  #last = 0;
  #calls = false;
  #catches = false;
  #blocks = 0;
  #labels = 0;
  #nesting = 0;
  #deepest = 0;

  constructor(sections: ModuleSections, signature: Signature, body: ByteReader) {
    this.#sections = sections;
    this.#signature = signature;
    this.#body = body;
    this.#from = body.at;
    let locals = 0;
    for (let groups = body.u32(); groups > 0; groups--) {
      locals += body.u32();
      skipValueType(body);
    }
    this.#locals = locals;
    this.#codeFrom = body.at;
    this.#scan();
  }

  get size(): FunctionSize {
    return {
      bytes: this.#body.end - this.#codeFrom,
      locals: this.#locals + this.#signature.parameters,
      labels: this.#labels,
      nesting: this.#deepest,
      blocks: this.#blocks,
    };
  }

  #scan(): void {
    const instruction = blank();
    const body = this.#body;
    this.#charge(body.at, true);
    if (this.#open) this.#open.amount += this.#locals >> 2;
    while (!body.done) {
      const at = body.at;
      readInstruction(body, instruction);
      if (instruction.feature) this.#sections.features.add(instruction.feature);
      this.#labels += instruction.labels;
      if (this.#open) this.#open.amount += (FREE.has(instruction.kind) ? 0 : 1) + instruction.more;
      this.#take(instruction, at, body.at);
      if (this.#nesting < 0) {
        this.#last = at;
        if (!body.done) throw new ModuleFault('malformed', 'A function goes on after its end.');
        return;
      }
    }
    throw new ModuleFault('malformed', 'A function has no end.');
  }

  #take(instruction: Instruction, at: number, next: number): void {
    switch (instruction.kind) {
      case 'plain':
      case 'free':
        return;
      case 'grow':
        if (this.#open) this.#open.amount += GROW_COST;
        return;
      case 'bulk':
        return this.#edit(at, this.#isWide(instruction) ? 'wide' : 'narrow');
      case 'block':
        return this.#nest(1);
      case 'try':
      case 'try-table':
        this.#catches = true;
        return this.#nest(1);
      case 'loop':
        this.#nest(1);
        this.#edit(next, 'land');
        return this.#charge(next, true);
      case 'if':
        this.#nest(1);
        return this.#charge(next);
      case 'catch':
        this.#edit(next, 'land');
        return this.#charge(next);
      case 'end':
      case 'delegate':
        this.#nest(-1);
        if (this.#nesting < 0) return;
        if (this.#catches) this.#edit(next, 'land');
        return this.#charge(next);
      case 'call':
        this.#calls = true;
        this.#edit(at, 'save');
        return this.#edit(next, 'reload');
      case 'return':
      case 'tail-call':
        this.#calls ||= instruction.kind === 'tail-call';
        this.#edit(at, 'leave');
        return this.#charge(next);
      case 'throw':
      case 'unreachable':
        this.#edit(at, 'save');
        return this.#charge(next);
      default:
        this.#charge(next);
    }
  }

  #nest(by: number): void {
    this.#nesting += by;
    this.#deepest = Math.max(this.#deepest, this.#nesting);
  }

  #edit(at: number, kind: Edit['kind']): void {
    this.#edits.push({ at, kind, amount: 0, checks: false });
  }

  #charge(at: number, checks = false): void {
    this.#blocks += 1;
    this.#open = { at, kind: 'charge', amount: 0, checks };
    this.#edits.push(this.#open);
  }

  #isWide({ space, first, second }: Instruction): boolean {
    if (space === 'narrow') return false;
    const wide = space === 'memory' ? this.#sections.wideMemories : this.#sections.wideTables;
    return wide[first] === true && wide[second] === true;
  }

  /** The entry of the code section, its length before it. */
  written(globals: MeterGlobals): Uint8Array {
    const size = this.size;
    // A frame costs about what the engine's baseline compiler takes of the stack for it, in words.
    const frame = 10 + size.locals + Math.min(64, size.bytes >> 4);
    const code = new MeteredCode({ globals, first: size.locals, frame, calls: this.#calls, catches: this.#catches });
    const { bytes, end } = this.#body;
    const parts: (Uint8Array | readonly number[])[] = [];
    const { results, resultCount } = this.#signature;
    const blockType = resultCount === 0 ? [EMPTY] : resultCount === 1 ? [...results] : sleb(globals.typeOf(this.#signature));
    parts.push(code.prologue, [BLOCK, ...blockType]);
    let from = this.#codeFrom;
    for (const [index, { at, kind, amount, checks }] of this.#edits.entries()) {
      if (at > this.#last) break;
      const added = kind === 'charge' ? code.charge(amount, checks && (index > 0 || this.#calls), index === 0) : code.of(kind);
      if (added.length === 0) continue;
      parts.push(bytes.subarray(from, at), added);
      from = at;
    }
    parts.push(bytes.subarray(from, this.#last), [END], code.of('leave'), bytes.subarray(this.#last, end));
    const written = joined([this.#withLocals(code.locals), ...parts]);
    return joined([leb(written.length), written]);
  }

  #withLocals(added: readonly number[]): Uint8Array {
    const { bytes, end } = this.#body;
    const header = new ByteReader(bytes, this.#from, end);
    const groups = header.u32();
    return joined([leb(groups + added.length), bytes.subarray(header.at, this.#codeFrom), added.flatMap(type => [1, type])]);
  }
}

/** What is added to one function. A function that catches keeps its fuel in the global alone: nobody knows where an exception leaves it. */
class MeteredCode {
  readonly #globals: MeterGlobals;
  readonly #frame: number;
  readonly #calls: boolean;
  readonly #catches: boolean;
  readonly #fuel: number;
  readonly #depth: number;
  readonly #narrow: number;
  readonly #wide: number;
  /** Types of the added locals: fuel, depth, a length of 32 and one of 64 bits. */
  readonly locals = [0x7e, 0x7f, 0x7f, 0x7e];

  constructor({
    globals,
    first,
    frame,
    calls,
    catches,
  }: { globals: MeterGlobals; first: number; frame: number; calls: boolean; catches: boolean }) {
    this.#globals = globals;
    this.#frame = frame;
    this.#calls = calls;
    this.#catches = catches;
    [this.#fuel, this.#depth, this.#narrow, this.#wide] = [first, first + 1, first + 2, first + 3];
  }

  get prologue(): number[] {
    const { fuel, depth } = this.#globals;
    const load = this.#catches ? [] : [GLOBAL_GET, ...leb(fuel), LOCAL_SET, ...leb(this.#fuel)];
    const enter = this.#calls
      ? [GLOBAL_GET, ...leb(depth), I32_CONST, ...sleb(this.#frame), I32_SUB, LOCAL_TEE, ...leb(this.#depth), GLOBAL_SET, ...leb(depth)]
      : [];
    return [...load, ...enter];
  }

  charge(amount: number, checks: boolean, entry: boolean): number[] {
    const paid = amount === 0 ? [] : [...this.#get, I64_CONST, ...sleb(amount), I64_SUB, ...this.#set];
    if (!checks) return paid;
    const both = entry && this.#calls ? [LOCAL_GET, ...leb(this.#depth), I64_EXTEND_S, I64_OR] : [];
    const isOut = [...this.#get, ...both, I64_CONST, 0, I64_LT_S, IF, EMPTY];
    return [...paid, ...isOut, ...this.of('save'), ...this.#more(isOut), UNREACHABLE, END, ...(this.#globals.slice ? [END] : [])];
  }

  /** Asks for more fuel, and goes on in the block after this one where it got some. */
  #more(isOut: readonly number[]): number[] {
    const { slice } = this.#globals;
    if (!slice) return [];
    const { guest, type, table } = slice;
    return [GLOBAL_GET, ...leb(guest), I32_CONST, 0, CALL_INDIRECT, ...leb(type), ...leb(table), ...this.of('reload'), ...isOut];
  }

  of(kind: Exclude<Edit['kind'], 'charge'>): number[] {
    const { fuel, depth } = this.#globals;
    switch (kind) {
      case 'save':
        return this.#catches ? [] : [LOCAL_GET, ...leb(this.#fuel), GLOBAL_SET, ...leb(fuel)];
      case 'reload':
        return this.#catches ? [] : [GLOBAL_GET, ...leb(fuel), LOCAL_SET, ...leb(this.#fuel)];
      case 'leave':
        return [
          ...this.of('save'),
          ...(this.#calls ? [LOCAL_GET, ...leb(this.#depth), I32_CONST, ...sleb(this.#frame), I32_ADD, GLOBAL_SET, ...leb(depth)] : []),
        ];
      case 'land':
        return this.#catches && this.#calls ? [LOCAL_GET, ...leb(this.#depth), GLOBAL_SET, ...leb(depth)] : [];
      case 'narrow':
        return this.#dynamic(this.#narrow, [I64_EXTEND_U]);
      case 'wide':
        return this.#dynamic(this.#wide, []);
    }
  }

  #dynamic(local: number, extend: readonly number[]): number[] {
    return [LOCAL_TEE, ...leb(local), ...this.#get, LOCAL_GET, ...leb(local), ...extend, I64_CONST, 4, I64_SHR_U, I64_SUB, ...this.#set];
  }

  get #get(): number[] {
    return this.#catches ? [GLOBAL_GET, ...leb(this.#globals.fuel)] : [LOCAL_GET, ...leb(this.#fuel)];
  }

  get #set(): number[] {
    return this.#catches ? [GLOBAL_SET, ...leb(this.#globals.fuel)] : [LOCAL_SET, ...leb(this.#fuel)];
  }
}
