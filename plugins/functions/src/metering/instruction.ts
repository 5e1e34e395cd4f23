import { type ByteReader, ModuleFault } from './byte-reader.ts';

/** Proposals beyond the core that a module uses. */
export type Feature = 'threads' | 'relaxed-simd' | 'gc' | 'multi-memory' | 'exceptions';

/** What an instruction means for metering. */
export type Kind =
  | 'plain'
  | 'free'
  | 'block'
  | 'loop'
  | 'if'
  | 'else'
  | 'end'
  | 'branch'
  | 'return'
  | 'call'
  | 'tail-call'
  | 'throw'
  | 'unreachable'
  | 'try'
  | 'try-table'
  | 'catch'
  | 'delegate'
  | 'grow'
  | 'bulk';

export interface Instruction {
  kind: Kind;
  /** Of a bulk one: what its length counts in, by which 32 or 64 bits it is. */
  space: 'memory' | 'table' | 'narrow';
  /** Memories or tables it works on. */
  first: number;
  second: number;
  /** Labels it names. */
  labels: number;
  /** What it costs beside one. */
  more: number;
  feature: Feature | undefined;
}

export const blank = (): Instruction => ({ kind: 'plain', space: 'narrow', first: 0, second: 0, labels: 0, more: 0, feature: undefined });

const SIMPLE: Readonly<Record<number, Kind>> = {
  0: 'unreachable',
  1: 'free',
  5: 'else',
  10: 'throw',
  11: 'end',
  15: 'return',
  25: 'catch',
  26: 'free',
};

/** Reads one instruction into `into`, which is used again and again. */
export function readInstruction(reader: ByteReader, into: Instruction): void {
  const opcode = reader.byte();
  into.kind = SIMPLE[opcode] ?? 'plain';
  into.labels = 0;
  into.more = 0;
  into.feature = undefined;
  if (opcode >= 0x28 && opcode <= 0x3e) return skipMemarg(reader, into);
  if (opcode >= 0x45 && opcode <= 0xc4) return;
  if (opcode >= 0x20 && opcode <= 0x26) return reader.skipLeb();
  if (opcode === 0x41 || opcode === 0x42) return reader.skipLeb();
  if (opcode <= 0x1f) return readControl(reader, opcode, into);
  if (opcode === 0x3f || opcode === 0x40) {
    if (opcode === 0x40) into.kind = 'grow';
    if (reader.u32() > 0) into.feature = 'multi-memory';
    return;
  }
  if (opcode === 0x43) return reader.skip(4);
  if (opcode === 0x44) return reader.skip(8);
  if (opcode >= 0xd0 && opcode <= 0xd6) return readReference(reader, opcode, into);
  if (opcode === 0xfb) return readGc(reader, into);
  if (opcode === 0xfc) return readMisc(reader, into);
  if (opcode === 0xfd) return readVector(reader, into);
  if (opcode === 0xfe) return readAtomic(reader, into);
  throw unknown(opcode);
}

const unknown = (opcode: number): ModuleFault =>
  new ModuleFault('unknown_instruction', `The instruction 0x${opcode.toString(16)} is not known here.`);

/** A block's type: nothing, one value, or a type's number. */
export function skipBlockType(reader: ByteReader): void {
  if (reader.peek() === 0x63 || reader.peek() === 0x64) return skipValueType(reader);
  reader.skipLeb();
}

export function skipValueType(reader: ByteReader): void {
  const byte = reader.byte();
  if (byte === 0x63 || byte === 0x64) skipHeapType(reader);
}

/** One of the names, or a type's number; a shared one has a byte before it. */
export function skipHeapType(reader: ByteReader): void {
  if (reader.peek() === 0x65) reader.skip(1);
  reader.skipLeb();
}

function readControl(reader: ByteReader, opcode: number, into: Instruction): void {
  switch (opcode) {
    case 0x02:
    case 0x03:
    case 0x04:
    case 0x06:
      into.kind = opcode === 0x02 ? 'block' : opcode === 0x03 ? 'loop' : opcode === 0x04 ? 'if' : 'try';
      if (opcode === 0x06) into.feature = 'exceptions';
      return skipBlockType(reader);
    case 0x1f:
      into.kind = 'try-table';
      into.feature = 'exceptions';
      return readTryTable(reader, into);
    case 0x07:
    case 0x08:
    case 0x09:
      into.kind = opcode === 0x07 ? 'catch' : 'throw';
      return reader.skipLeb();
    case 0x18:
      into.kind = 'delegate';
      return reader.skipLeb();
    case 0x0c:
    case 0x0d:
      into.kind = 'branch';
      into.labels = 1;
      return reader.skipLeb();
    case 0x0e:
      into.kind = 'branch';
      into.labels = reader.u32() + 1;
      if (into.labels > reader.end - reader.at) throw new ModuleFault('malformed', 'A br_table is longer than its function.');
      for (let index = 0; index < into.labels; index++) reader.skipLeb();
      return;
    case 0x10:
    case 0x14:
    case 0x12:
    case 0x15:
      into.kind = opcode === 0x10 || opcode === 0x14 ? 'call' : 'tail-call';
      return reader.skipLeb();
    case 0x11:
    case 0x13:
      into.kind = opcode === 0x11 ? 'call' : 'tail-call';
      reader.skipLeb();
      return reader.skipLeb();
    case 0x1c:
      for (let count = reader.u32(); count > 0; count--) skipValueType(reader);
      return;
    default:
      if (!(opcode in SIMPLE) && opcode !== 0x1b) throw unknown(opcode);
  }
}

function readTryTable(reader: ByteReader, into: Instruction): void {
  skipBlockType(reader);
  into.labels = reader.u32();
  for (let count = into.labels; count > 0; count--) {
    if (reader.byte() < 2) reader.skipLeb();
    reader.skipLeb();
  }
}

function readReference(reader: ByteReader, opcode: number, into: Instruction): void {
  if (opcode === 0xd0) return skipHeapType(reader);
  if (opcode === 0xd2) return reader.skipLeb();
  if (opcode === 0xd3) into.feature = 'gc';
  if (opcode === 0xd5 || opcode === 0xd6) {
    into.kind = 'branch';
    into.labels = 1;
    reader.skipLeb();
  }
}

function skipMemarg(reader: ByteReader, into: Instruction): void {
  // The sixth bit of the alignment says that a memory is named.
  if (reader.u32() & 0x40 && reader.u32() > 0) into.feature = 'multi-memory';
  reader.skipLeb();
}

/** Immediates of the instructions of garbage collection, by number: t a number, h a heap type. */
const GC = [
  't',
  't',
  'tt',
  'tt',
  'tt',
  'tt',
  't',
  't',
  'tt',
  'tt',
  'tt',
  't',
  't',
  't',
  't',
  '',
  't',
  'tt',
  'tt',
  'tt',
  'h',
  'h',
  'h',
  'h',
  'flhh',
  'flhh',
  '',
  '',
  '',
  '',
  '',
];
const GC_BULK = new Set([6, 7, 9, 10, 16, 17, 18, 19]);

function readGc(reader: ByteReader, into: Instruction): void {
  const number = reader.u32();
  const immediates = GC[number];
  if (immediates === undefined) throw unknown(0xfb00 + number);
  into.feature = 'gc';
  if (GC_BULK.has(number)) {
    into.kind = 'bulk';
    into.space = 'narrow';
  }
  if (number === 24 || number === 25) {
    into.kind = 'branch';
    into.labels = 1;
  }
  if (number === 8) {
    reader.skipLeb();
    into.more = reader.u32();
    return;
  }
  for (const each of immediates) {
    if (each === 'h') skipHeapType(reader);
    else reader.skipLeb();
  }
}

function readMisc(reader: ByteReader, into: Instruction): void {
  const number = reader.u32();
  if (number <= 7 || (number >= 19 && number <= 22)) return;
  if (number > 22 || number === 18) throw unknown(0xfc00 + number);
  into.first = reader.u32();
  into.second = into.first;
  if (number === 8 || number === 10 || number === 12 || number === 14) into.second = reader.u32();
  if (number <= 11 && number !== 9 && (into.second > 0 || (number !== 8 && into.first > 0))) into.feature = 'multi-memory';
  if (number === 9 || number === 13 || number === 16) return;
  into.kind = number === 15 ? 'grow' : 'bulk';
  // The length of an init is always narrow, whatever it fills.
  into.space = number === 8 || number === 12 ? 'narrow' : number <= 11 ? 'memory' : 'table';
}

function readVector(reader: ByteReader, into: Instruction): void {
  const number = reader.u32();
  if (number >= 0x100) into.feature = 'relaxed-simd';
  if (number <= 11 || number === 92 || number === 93) return skipMemarg(reader, into);
  if (number === 12 || number === 13) return reader.skip(16);
  if (number >= 21 && number <= 34) return reader.skip(1);
  if (number >= 84 && number <= 91) {
    skipMemarg(reader, into);
    reader.skip(1);
  }
}

function readAtomic(reader: ByteReader, into: Instruction): void {
  const number = reader.u32();
  into.feature = 'threads';
  if (number === 3) return reader.skip(1);
  if (number > 0x4e) throw unknown(0xfe00 + number);
  skipMemarg(reader, into);
}
