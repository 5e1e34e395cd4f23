import type { Ctx } from './context.ts';

const MAX_BYTES = 65_536;
const MAX_DEPTH = 32;

/** Refuses an input that could not be kept, or handed on. Throws `input_refused` or `input_too_large`. */
export function requireFitting({ problem }: Pick<Ctx, 'problem'>, input: object): void {
  if (isDeeperThan(MAX_DEPTH, input)) throw problem('input_refused', { detail: `The input is nested more than ${MAX_DEPTH} deep.` });
  const bytes = Buffer.byteLength(JSON.stringify(input));
  if (bytes > MAX_BYTES) throw problem('input_too_large', { detail: `The input has ${bytes} bytes; at most ${MAX_BYTES} are taken.` });
}

/** Without recursion: its author chose how deep it is. */
export function isDeeperThan(most: number, value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > most) return true;
    level = level.flatMap(node => (typeof node === 'object' && node !== null ? Object.values(node) : []));
  }
  return false;
}
