import { randomFillSync } from 'node:crypto';

const random = Buffer.alloc(6 * 512);
let used = random.length;

/**
 * A UUIDv7 whose order is that of (`ms`, `n`): the 26 bits behind version and variant count inside one millisecond (RFC 9562, 6.2 method
 * 1). Made under the lock of the trail, it follows commit order (H-20).
 */
export function auditId(ms: number, n: number): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  const tail = random.toString('hex', used, (used += 6));
  return `${timeOf(ms)}-7${(n >>> 14).toString(16).padStart(3, '0')}-${(0x8000 | (n & 0x3fff)).toString(16)}-${tail}`;
}

/** The bound below which ids are exactly those of `(ts, audit_id) < (ms, id)`, for any `id`: one of ours says its time itself. */
export function boundOf(ms: number, id: string): string {
  const own = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
  return own === ms ? id : `${timeOf(own > ms ? ms + 1 : ms)}-0000-0000-000000000000`;
}

function timeOf(ms: number): string {
  const time = Math.min(Math.max(ms, 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}
