import { authorityRows } from './authority.ts';
import { liveRows } from '../edge/live-connections.ts';
import { peerRows } from '../edge/peer-rows.ts';
import { ingressRows } from './ingress.ts';
import type { Row, Size } from '../row.ts';

/** What stands at the edge: the ingress and the certificate authority. */
export async function* edgeRows(size: Size): AsyncGenerator<Row> {
  yield* ingressRows(size);
  yield* liveRows(size);
  yield* peerRows(size);
  yield* authorityRows(size);
}
