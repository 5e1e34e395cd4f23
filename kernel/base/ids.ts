import { randomBytes } from 'node:crypto';

const DRAWN = 16 * 256;
let lastMs = 0;
let sequence = 0;
/** Random bytes drawn ahead: a call into the generator costs more than the id. Each byte is used once. */
let pool = Buffer.alloc(0);
let used = 0;

function draw(count: number): Buffer {
  if (used + count > pool.length) {
    pool = randomBytes(DRAWN);
    used = 0;
  }
  used += count;
  return pool.subarray(used - count, used);
}

/** A UUIDv7 (RFC 9562), lower case, monotonic within the process: the 12 bits after the version count inside one millisecond. */
export function newId(): string {
  const now = Date.now();
  if (now > lastMs) {
    lastMs = now;
    sequence = draw(2).readUInt16BE(0) & 0x7ff;
  } else if (++sequence > 0xfff) {
    lastMs += 1;
    sequence = 0;
  }
  const bytes = draw(16);
  bytes.writeUIntBE(lastMs, 0, 6);
  bytes.writeUInt16BE(0x7000 | sequence, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
