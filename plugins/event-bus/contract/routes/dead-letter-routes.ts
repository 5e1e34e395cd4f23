import { get, Id, Page, PageQuery, post, Type } from '@platform/sdk/contract';
import { DeadLetter, Replayed, ReplayMatching, ReplayReport, ReplayRequest, ReplayResult } from '../schema/dead-letter.ts';

const where = ['env_required', 'env_mismatch'] as const;
const envQuery = { env_id: Type.Optional(Id) };
const emits = ['platform:bus:dlq:replayed'] as const;
const listed = {
  query: {
    ...envQuery,
    ...PageQuery,
    stream_family: Type.Optional(Type.String({ title: 'Family', maxLength: 64 })),
    event_type: Type.Optional(Type.String({ title: 'Event', maxLength: 200 })),
    reason: Type.Optional(Type.String({ title: 'Reason contains', maxLength: 200 })),
  },
  returns: Page(DeadLetter),
  problems: where,
} as const;

/** Events that nobody could handle: seeing them, and giving them back to their streams. */
export const deadLetterRoutes = {
  listDeadLetters: get('/v1/dlq', {
    summary: 'Dead letters, newest first',
    gate: 'bus:admin',
    ...listed,
  }),
  /** What the page shows: like every page of the bus it is for whoever reads, consumes or administers (G-BUS-09). */
  deadLetterRows: get('/v1/dlq/page', {
    summary: 'Dead letters of the page, newest first',
    gate: { any: ['bus:read', 'bus:consume', 'bus:admin'] },
    ...listed,
    hidden: true,
  }),
  replayDeadLetters: post('/v1/dlq/replay', {
    summary: 'Replay dead letters',
    gate: 'bus:admin',
    body: ReplayRequest,
    returns: ReplayResult,
    problems: [...where, 'unknown_dead_letter', 'message_ids_required'],
    emits,
  }),
  replayMatching: post('/v1/dlq/replay-matching', {
    summary: 'Replay every dead letter that matches',
    gate: 'bus:admin',
    query: envQuery,
    body: ReplayMatching,
    returns: ReplayReport,
    problems: where,
    emits,
    hidden: true,
  }),
  replay: post('/v1/dlq/{dlq_id}/replay', {
    params: { dlq_id: Id },
    summary: 'Replay',
    gate: 'bus:admin',
    query: envQuery,
    returns: Replayed,
    problems: [...where, 'unknown_dead_letter'],
    emits,
    hidden: true,
  }),
} as const;
