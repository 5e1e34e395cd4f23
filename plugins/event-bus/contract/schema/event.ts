import { Id, Instant, Type, type Static, CorrelationId } from '@platform/sdk/contract';

/** Grammar of event names for producers; what a contract of the platform waives is the exception (C3, C4). */
export const EVENT_TYPE = /^[a-z0-9_-]{1,64}(:[a-z0-9_-]{1,64}){3}$/;
export const FAMILY = /^[a-zA-Z0-9._-]{1,64}$/;
export const RESERVED_FAMILIES: ReadonlySet<string> = new Set(['dlq', 'delayed', 'jti']);
export const MAX_PAYLOAD_BYTES = 262_144;
export const MAX_BATCH = 100;
/** Entries idle this long are given to the next reader that asks. */
export const IDLE_MS = 60_000;
/** Nacks after which an entry is a dead letter. */
export const MAX_NACKS = 5;
/** Idle redeliveries after which an entry is a dead letter. */
export const MAX_DELIVERIES = 16;

const Payload = Type.Object({}, { additionalProperties: true });

export const ProduceRequest = Type.Object({
  event_type: Type.String({ description: 'vertical:service:resource:operation' }),
  env_id: Type.Optional(Id),
  stream_family: Type.String(),
  payload: Type.Unknown({ description: 'A JSON object of at most 256 KiB' }),
  idempotency_key: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  correlation_id: Type.Optional(CorrelationId),
  created_at: Type.Optional(Instant),
  publisher_id_token: Type.Optional(Type.String({ maxLength: 16_384 })),
});
export type ProduceRequest = Static<typeof ProduceRequest>;

export const BatchRequest = Type.Object({
  // Each row stands alone: an ill-typed one fails itself and not the call.
  events: Type.Array(Type.Unsafe<ProduceRequest>({ description: 'As the body of POST /v1/produce; 1 to 100 rows' })),
});
export const Produced = Type.Object({ message_id: Type.String(), stream: Type.String() });
export const BatchResult = Type.Object({
  results: Type.Array(
    Type.Union([Produced, Type.Object({ error: Type.String(), status: Type.Integer(), detail: Type.Optional(Type.String()) })]),
  ),
});

export const StreamEntry = Type.Object({
  message_id: Type.String(),
  stream: Type.String(),
  event_type: Type.String(),
  env_id: Type.String(),
  stream_family: Type.String(),
  payload: Payload,
  created_at: Type.String(),
  produced_at: Type.String(),
  produced_by: Type.String(),
  publisher_subject: Type.String(),
  publisher_id_token: Type.Optional(Type.String()),
  correlation_id: Type.String(),
  idempotency_key: Type.String(),
  inbox_id: Type.Optional(Type.String()),
  replayed_from_dlq: Type.Optional(Type.Literal(true)),
  original_idempotency_key: Type.Optional(Type.String()),
  delivery_count: Type.Optional(Type.Integer()),
});
export type StreamEntry = Static<typeof StreamEntry>;
