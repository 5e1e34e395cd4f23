import { closeSync, openSync, readSync } from 'node:fs';

/**
 * Where in the stream of writes a snapshot was taken: it holds everything before `offset` of the stream `id`, which then wrote to database
 * `db`.
 */
export interface SnapshotPlace {
  readonly id: string;
  readonly offset: number;
  readonly db: number;
}

const HEAD_BYTES = 2_048;
const AUX = 0xfa;
const HEADER = /^VALKEY\d{3}$|^REDIS\d{4}$/;

/**
 * Reads the place from the head of a snapshot file; `undefined` where there is no file, or one that was taken while nobody followed the
 * stream.
 */
export function readSnapshotPlace(file: string): SnapshotPlace | undefined {
  const fields = auxiliaryFields(headOf(file));
  const [id, offset] = [fields.get('repl-id'), Number(fields.get('repl-offset'))];
  return id !== undefined && /^[0-9a-f]{40}$/.test(id) && Number.isSafeInteger(offset)
    ? { id, offset, db: Number(fields.get('repl-stream-db') ?? 0) }
    : undefined;
}

function headOf(path: string): Buffer {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    return head.subarray(0, readSync(file, head, 0, HEAD_BYTES, 0));
  } finally {
    closeSync(file);
  }
}

/** The text fields in front of the data: each is a mark and two strings, which may be written as numbers. */
function auxiliaryFields(head: Buffer): Map<string, string> {
  const fields = new Map<string, string>();
  if (!HEADER.test(head.toString('latin1', 0, 9))) return fields;
  let at = 9;
  const text = (): string => {
    const mark = head.readUInt8(at);
    at += 1;
    if (mark >= 0xc0) {
      const bytes = 2 ** (mark - 0xc0);
      if (bytes > 4) throw new RangeError('not a text');
      at += bytes;
      return String(head.readIntLE(at - bytes, bytes));
    }
    if (mark >= 0x80) throw new RangeError('longer than the fields that are looked for');
    const length = mark < 0x40 ? mark : ((mark & 0x3f) << 8) | head.readUInt8(at++);
    at += length;
    if (at > head.length) throw new RangeError('cut');
    return head.toString('latin1', at - length, at);
  };
  try {
    while (head[at] === AUX) {
      at += 1;
      const name = text();
      fields.set(name, text());
    }
  } catch (error) {
    // Behind the fields that are looked for there is anything: what was read before it stands.
    if (!(error instanceof RangeError)) throw error;
  }
  return fields;
}
