import { Batcher } from '@platform/sdk';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import { record } from '../outbox-store.ts';
import type { Outcome } from './delivery.ts';
import type { RelayClock } from './relay-clock.ts';

/** Outcomes whose writing takes longer are delivered again, under the same keys. */
const WRITE_MS = 30_000;
/** More calls than can be under way. */
const CALLS_WAITING = 10_000;

/** Writes what became of rows: calls that end in one turn, or while others are being written, are written together. */
export const outcomeWriter = (session: PostgresPool, clock: RelayClock): Batcher<readonly Outcome[]> =>
  new Batcher<readonly Outcome[]>({
    most: CALLS_WAITING,
    waiting: CALLS_WAITING,
    deadlineMs: WRITE_MS,
    full: () => new Error('too many outcomes wait to be written'),
    work: async calls => {
      await record(session, calls.flat(), clock.now());
      return [];
    },
  });
