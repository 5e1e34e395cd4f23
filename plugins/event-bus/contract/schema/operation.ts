import { Type, type Static } from '@platform/sdk/contract';

export const StreamRow = Type.Object({
  stream: Type.String(),
  env_id: Type.String(),
  stream_family: Type.String(),
  length: Type.Integer(),
  first_id: Type.Union([Type.String(), Type.Null()]),
  last_id: Type.Union([Type.String(), Type.Null()]),
  groups: Type.Integer(),
});
export type StreamRow = Static<typeof StreamRow>;
export const GroupLag = Type.Object({
  group: Type.String(),
  pending: Type.Integer(),
  lag: Type.Union([Type.Integer(), Type.Null()]),
  last_delivered_id: Type.String(),
  oldest_pending_ms: Type.Union([Type.Integer(), Type.Null()]),
});
export type GroupLag = Static<typeof GroupLag>;
export const Lag = Type.Object({ stream: Type.String(), groups: Type.Array(GroupLag) });
export const GroupRow = Type.Object({
  row_id: Type.String(),
  stream_family: Type.String(),
  group: Type.String(),
  pending: Type.Integer(),
  lag: Type.Union([Type.Integer(), Type.Null()]),
  last_delivered_id: Type.String(),
  oldest_pending_ms: Type.Union([Type.Integer(), Type.Null()]),
});
export type GroupRow = Static<typeof GroupRow>;
export const Overview = Type.Object({
  streams: Type.Integer(),
  entries: Type.Integer(),
  groups: Type.Integer(),
  pending: Type.Integer(),
  retries: Type.Integer(),
  delayed: Type.Integer(),
  dead_letters: Type.Integer(),
});
export const Metrics = Type.Object({
  produced: Type.Integer(),
  consumed: Type.Integer(),
  acked: Type.Integer(),
  nacked: Type.Integer(),
  dead_lettered: Type.Integer(),
  inbox_unrelayed: Type.Integer(),
  retry_depth: Type.Integer(),
  delayed_depth: Type.Integer(),
  sse_clients: Type.Integer(),
});
