import { authorityRows } from './authority.ts';
import type { Row, Size } from './row.ts';

/** What stands at the edge: the certificate authority. */
export async function* edgeRows(size: Size): AsyncGenerator<Row> {
  yield* authorityRows(size);
}
