import { randomBytes } from 'node:crypto';

let last = 0;
let sequence = 0;

/** A UUIDv7 that is greater than every one before it from this process: the order of ids is the order of acceptance. */
export function newId(): string {
  const now = Date.now();
  if (now > last) {
    last = now;
    sequence = randomBytes(2).readUInt16BE(0) & 0x7ff;
  } else if (++sequence > 0xfff) {
    last += 1;
    sequence = 0;
  }
  return stamped(last, sequence, randomBytes(8));
}

/** The smallest UUIDv7 of a moment; everything made before it sorts below. */
export const lowestId = (at: Date): string => stamped(at.getTime(), 0, Buffer.alloc(8));

function stamped(ms: number, sub: number, tail: Buffer): string {
  const bytes = Buffer.concat([Buffer.alloc(8), tail]);
  bytes.writeUIntBE(ms, 0, 6);
  bytes.writeUInt16BE(0x7000 | sub, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
