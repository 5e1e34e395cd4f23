import { authorityRows } from './authority.ts';
import { ingressRows } from './ingress.ts';
import type { Row, Size } from './row.ts';

/** What stands at the edge: the ingress and the certificate authority. */
export async function* edgeRows(size: Size): AsyncGenerator<Row> {
  yield* ingressRows(size);
  yield* authorityRows(size);
}
