import { post } from '@platform/sdk/contract';
import { BatchRequest, BatchResult, Produced, ProduceRequest } from '../schema/event.ts';

/** Refusals of an event before anything is stored, in the order they are asked (G-BUS-01). */
export const refusedEvent = [
  'invalid_event_type',
  'invalid_stream_family',
  'payload_not_object',
  'payload_too_large',
  'invalid_event',
  'env_required',
  'env_mismatch',
  'event_ownership',
  'env_suspended',
  'rate_limited',
] as const;

/** Publishing events now. */
export const produceRoutes = {
  produce: post('/v1/produce', {
    summary: 'Publish one event',
    gate: 'bus:produce',
    idempotency: 'own',
    dispatch: true,
    body: ProduceRequest,
    returns: Produced,
    problems: [...refusedEvent, 'inbox_failed', 'append_failed', 'append_pending', 'overloaded'],
  }),
  produceBatch: post('/v1/produce/batch', {
    summary: 'Publish up to 100 events, each on its own',
    gate: 'bus:produce',
    idempotency: 'own',
    body: BatchRequest,
    returns: BatchResult,
    problems: ['batch_size'],
    limit: 28 * 1_048_576,
  }),
} as const;
