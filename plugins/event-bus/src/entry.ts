import type { Attempt } from '../contract/schema/dead-letter.ts';
import type { StreamEntry } from '../contract/schema/event.ts';
import { shownStream, type StreamRef } from './names.ts';

/** An event with everything around it, as it lies on a stream; the payload stays the text it came as. */
export interface Envelope {
  readonly event_type: string;
  readonly payload: string;
  readonly created_at: string;
  readonly produced_at: string;
  readonly produced_by: string;
  readonly publisher_subject: string;
  readonly publisher_id_token?: string;
  readonly correlation_id: string;
  readonly idempotency_key: string;
  readonly inbox_id?: string;
  readonly replayed_from_dlq?: '1';
  readonly original_idempotency_key?: string;
  /** Of a redelivered copy: how often its group refused it, and the group, which alone gets to see the copy. */
  readonly nacks?: string;
  readonly only_group?: string;
  /** Every refusal so far with its time and reason, as JSON. */
  readonly history?: string;
}

/** An entry as it was read in a group. */
export interface ReadEntry {
  readonly ref: StreamRef;
  readonly id: string;
  readonly envelope: Envelope;
  readonly deliveries: number;
}

/** Members that go onto a stream; where it lies says the rest. */
export const namesOf = (envelope: Envelope): (keyof Envelope)[] =>
  (Object.keys(envelope) as (keyof Envelope | keyof Placed)[]).filter((name): name is keyof Envelope => name !== 'env_id' && name !== 'stream_family' && envelope[name] !== undefined);
type Placed = { env_id: string; stream_family: string };

/** Fields and values of an XADD. */
export const fieldsOf = (envelope: Envelope): string[] => namesOf(envelope).flatMap(name => [name, envelope[name] as string]);

export function envelopeOf(fields: readonly string[]): Envelope {
  const envelope: Record<string, string> = {};
  for (let index = 0; index + 1 < fields.length; index += 2) envelope[fields[index] as string] = fields[index + 1] as string;
  return envelope as unknown as Envelope;
}

/** Every refusal of an entry so far, oldest first. */
export const historyOf = ({ history }: Envelope): Attempt[] => JSON.parse(history ?? '[]') as Attempt[];

/** The wire form (G-K-12). */
export function entryOf({ ref, id, envelope, deliveries }: ReadEntry): StreamEntry {
  return {
    message_id: id,
    stream: shownStream(ref),
    event_type: envelope.event_type,
    env_id: ref.env,
    stream_family: ref.family,
    payload: JSON.parse(envelope.payload) as StreamEntry['payload'],
    created_at: envelope.created_at,
    produced_at: envelope.produced_at,
    produced_by: envelope.produced_by,
    publisher_subject: envelope.publisher_subject,
    ...(envelope.publisher_id_token === undefined ? {} : { publisher_id_token: envelope.publisher_id_token }),
    correlation_id: envelope.correlation_id,
    idempotency_key: envelope.idempotency_key,
    ...(envelope.inbox_id === undefined ? {} : { inbox_id: envelope.inbox_id }),
    ...(envelope.replayed_from_dlq === undefined ? {} : { replayed_from_dlq: true as const }),
    ...(envelope.original_idempotency_key === undefined ? {} : { original_idempotency_key: envelope.original_idempotency_key }),
    delivery_count: Number(envelope.nacks ?? 0) + deliveries,
  };
}
