import type { Ctx } from './context.ts';

/** Position in a listing ordered newest first by `(created_at, id)` (G-K-04). */
export interface Position {
  readonly at: string;
  readonly id: string;
}

export const encodeCursor = ({ at, id }: Position): string => Buffer.from(JSON.stringify([at, id])).toString('base64url');

/** Reads a cursor of ours; anything else is 400 `invalid_cursor`. */
export function decodeCursor(ctx: Ctx, cursor: string | undefined): Position | undefined {
  if (cursor === undefined) return undefined;
  try {
    const [at, id] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as [unknown, unknown];
    if (typeof at === 'string' && !Number.isNaN(Date.parse(at)) && typeof id === 'string' && /^[0-9a-f-]{36}$/.test(id)) return { at, id };
  } catch {
    // Falls through to the refusal: a cursor is ours or it is not.
  }
  throw ctx.problem('invalid_cursor', { detail: 'Start again without a cursor.' });
}

/** Cuts a page out of `limit + 1` rows. */
export function page<T>(rows: readonly T[], limit: number, position: (row: T) => Position): { items: T[]; next_cursor: string | null } {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next_cursor: rows.length > limit && last ? encodeCursor(position(last)) : null };
}
