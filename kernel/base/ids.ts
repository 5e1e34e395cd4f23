import { randomFillSync } from 'node:crypto';

/** Random bytes drawn ahead: a call into the generator costs more than the id. Each byte is used once. */
const pool = Buffer.alloc(16 * 256);
let used = pool.length;
let lastMs = 0;
let sequence = 0;

/** The text of one id, written over for the next. */
const text = Buffer.from('00000000-0000-7000-0000-000000000000', 'latin1');
const DIGITS = Buffer.from('0123456789abcdef', 'latin1');
/** Where the two digits of each byte stand in the text. */
const AT = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34] as const;

function put(index: number, byte: number): void {
  const at = AT[index] as number;
  text[at] = DIGITS[byte >> 4] as number;
  text[at + 1] = DIGITS[byte & 0xf] as number;
}

/** A UUIDv7 (RFC 9562), lower case, monotonic within the process: the 12 bits after the version count inside one millisecond. */
export function newId(): string {
  if (used + 10 > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const now = Date.now();
  if (now > lastMs) {
    lastMs = now;
    sequence = pool.readUInt16BE(used) & 0x7ff;
  } else if (++sequence > 0xfff) {
    lastMs += 1;
    sequence = 0;
  }
  const [high, low] = [Math.floor(lastMs / 2 ** 32), lastMs >>> 0];
  put(0, (high >> 8) & 0xff);
  put(1, high & 0xff);
  for (let index = 2; index < 6; index++) put(index, (low >>> (8 * (5 - index))) & 0xff);
  put(6, 0x70 | (sequence >> 8));
  put(7, sequence & 0xff);
  put(8, ((pool[used + 2] as number) & 0x3f) | 0x80);
  for (let index = 9; index < 16; index++) put(index, pool[used + index - 6] as number);
  used += 10;
  return text.toString('latin1');
}
