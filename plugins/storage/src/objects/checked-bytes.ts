import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';

/** A reader that takes nothing for so long is gone. */
const QUIET_MS = 60_000;

/**
 * Bytes on their way out, checked against what was stored: the last piece is held back until the hash is right, so damaged bytes are never
 * a whole answer. Without a hash (a range) the length alone is checked. `onEnd` is called once, however it ends.
 */
export function checkedBytes(
  source: Readable,
  { size, sha256, onEnd }: { size: number; sha256: string | undefined; onEnd: (fault: Error | undefined) => void },
): Readable {
  let fault: Error | undefined;
  const out: Readable = Readable.from(checked(), { objectMode: false, highWaterMark: 262_144 });
  out.once('close', () => {
    source.destroy();
    onEnd(fault);
  });
  return out;

  async function* checked(): AsyncGenerator<Buffer> {
    const hash = sha256 === undefined ? undefined : createHash('sha256');
    let [seen, held] = [0, undefined as Buffer | undefined];
    for await (const piece of source as AsyncIterable<Buffer>) {
      seen += piece.length;
      hash?.update(piece);
      if (held) yield* watched(held);
      held = piece;
    }
    if (seen !== size || (hash && hash.digest('hex') !== sha256))
      throw (fault = new Error(`stored bytes are damaged: ${seen} of ${size} came`));
    if (held) yield* watched(held);
  }

  function* watched(piece: Buffer): Generator<Buffer> {
    const timer = setTimeout(() => out.destroy(new Error(`nobody read for ${QUIET_MS} ms`)), QUIET_MS);
    try {
      yield piece;
    } finally {
      clearTimeout(timer);
    }
  }
}
