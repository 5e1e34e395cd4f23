import type { Source } from '../../api/page-def.ts';
import { valueAt } from './path.ts';

/** The rows of an answer: at `items`, or the answer itself when it is a list. */
export function itemsOf(data: unknown, source: Source): readonly unknown[] {
  if (Array.isArray(data)) return data;
  const items = valueAt(data, source.items ?? 'items');
  return Array.isArray(items) ? items : [];
}

export function nextCursorOf(data: unknown): string | undefined {
  const cursor = valueAt(data, 'next_cursor');
  return typeof cursor === 'string' && cursor ? cursor : undefined;
}
