import type { Expr } from '../../api/page-def.ts';
import { valueAt } from './path.ts';

/** One comparison, and no language beyond it. Later data stands before earlier. */
export function holds(expr: Expr | undefined, ...data: unknown[]): boolean {
  if (!expr) return true;
  const value = data.map(each => valueAt(each, expr.path)).findLast(each => each !== undefined);
  if (expr.op === 'exists') return (value !== undefined && value !== null) === (expr.value !== false);
  return (JSON.stringify(value ?? null) === JSON.stringify(expr.value ?? null)) === (expr.op === 'eq');
}
