import type { Attempt } from '../../contract/schema/dead-letter.ts';
import type { StreamEntry } from '../../contract/schema/event.ts';
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

type Read = (envelope: Envelope) => string | undefined;

/**
 * What goes onto a stream; where it lies says the rest. Read by names that the engine knows: one in a variable is looked up anew for every
 * event.
 */
const READ: Readonly<Record<keyof Envelope, Read>> = {
  event_type: ({ event_type }) => event_type,
  payload: ({ payload }) => payload,
  created_at: ({ created_at }) => created_at,
  produced_at: ({ produced_at }) => produced_at,
  produced_by: ({ produced_by }) => produced_by,
  publisher_subject: ({ publisher_subject }) => publisher_subject,
  publisher_id_token: ({ publisher_id_token }) => publisher_id_token,
  correlation_id: ({ correlation_id }) => correlation_id,
  idempotency_key: ({ idempotency_key }) => idempotency_key,
  inbox_id: ({ inbox_id }) => inbox_id,
  replayed_from_dlq: ({ replayed_from_dlq }) => replayed_from_dlq,
  original_idempotency_key: ({ original_idempotency_key }) => original_idempotency_key,
  nacks: ({ nacks }) => nacks,
  only_group: ({ only_group }) => only_group,
  history: ({ history }) => history,
};
export interface Member {
  readonly name: keyof Envelope;
  readonly read: Read;
}
export const MEMBERS: readonly Member[] = Object.entries(READ).map(([name, read]) => ({ name: name as keyof Envelope, read }));

/** Which members an envelope has: a bit for each, in the order of {@link MEMBERS}. */
export function shapeOf(envelope: Envelope): number {
  let shape = 0;
  for (let bit = 0; bit < MEMBERS.length; bit++) if ((MEMBERS[bit] as Member).read(envelope) !== undefined) shape |= 1 << bit;
  return shape;
}

/** Fields and values of an XADD. */
export const fieldsOf = (envelope: Envelope): string[] =>
  MEMBERS.flatMap(({ name, read }) => {
    const value = read(envelope);
    return value === undefined ? [] : [name, value];
  });

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
