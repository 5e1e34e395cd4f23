/** The bytes are not a module as the binary format has it, or are more than this service takes. */
export class ModuleFault extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Reads the binary format's primitives from one place to another. */
export class ByteReader {
  readonly bytes: Uint8Array;
  readonly end: number;
  at: number;

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  get done(): boolean {
    return this.at >= this.end;
  }

  byte(): number {
    if (this.at >= this.end) throw new ModuleFault('malformed', 'The module ends in the middle of something.');
    return this.bytes[this.at++] as number;
  }

  peek(): number {
    return this.bytes[this.at] ?? -1;
  }

  /** An unsigned number of up to 32 bits. */
  u32(): number {
    let [value, shift] = [0, 0];
    for (;;) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
      shift += 7;
      if (shift > 28) {
        const last = this.byte();
        return value + last * 2 ** shift;
      }
    }
  }

  u64(): bigint {
    let [value, shift] = [0n, 0n];
    for (;;) {
      const byte = this.byte();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
      shift += 7n;
    }
  }

  /** Passes over a number of any width, signed or not. */
  skipLeb(): void {
    while (this.byte() >= 0x80) {}
  }

  skip(count: number): void {
    this.at += count;
    if (this.at > this.end) throw new ModuleFault('malformed', 'The module ends in the middle of something.');
  }

  name(): string {
    const length = this.u32();
    const start = this.at;
    this.skip(length);
    return new TextDecoder().decode(this.bytes.subarray(start, this.at));
  }
}

/** An unsigned number in the binary format. */
export function leb(value: number | bigint): number[] {
  const bytes: number[] = [];
  let rest = BigInt(value);
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest > 0n ? low | 0x80 : low);
  } while (rest > 0n);
  return bytes;
}

/** A signed one. */
export function sleb(value: number | bigint): number[] {
  const bytes: number[] = [];
  let rest = BigInt(value);
  for (;;) {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    if ((rest === 0n && !(low & 0x40)) || (rest === -1n && low & 0x40)) return [...bytes, low];
    bytes.push(low | 0x80);
  }
}

export function joined(parts: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
