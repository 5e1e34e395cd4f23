import { Id, post, stream, Type } from '@platform/sdk/contract';
import {
  Acked,
  AckRequest,
  CloseRequest,
  Consumed,
  ConsumeRequest,
  Extended,
  ExtendRequest,
  GroupName,
  Nacked,
  NackRequest,
} from '../schema/consumption.ts';

const where = ['env_required', 'env_mismatch', 'invalid_stream_family'] as const;

/** Receiving events through consumer groups, and settling them. */
export const consumeRoutes = {
  consume: post('/v1/consume', {
    summary: 'Read new events through a consumer group',
    gate: 'bus:consume',
    body: ConsumeRequest,
    returns: Consumed,
    problems: [...where, 'm2m_only'],
    waits: true,
  }),
  closeGroup: post('/v1/consume/close', {
    summary: "Destroy the caller's consumer group",
    gate: 'bus:consume',
    body: CloseRequest,
    returns: Type.Object({ closed: Type.Integer() }),
    problems: ['invalid_stream_family', 'm2m_only'],
    hidden: true,
  }),
  consumeSse: stream('/v1/consume/sse', {
    summary: 'Receive events as server-sent events',
    gate: 'bus:consume',
    query: { env_id: Type.Optional(Id), stream_family: Type.String(), consumer_group: GroupName },
    problems: where,
  }),
  ack: post('/v1/ack', {
    summary: 'Acknowledge events',
    gate: 'bus:consume',
    body: AckRequest,
    returns: Acked,
    problems: [...where, 'message_ids_required'],
  }),
  nack: post('/v1/nack', {
    summary: 'Ask for events again later',
    gate: 'bus:consume',
    body: NackRequest,
    returns: Nacked,
    problems: [...where, 'message_ids_required'],
    emits: ['platform:bus:dlq:added'],
  }),
  extend: post('/v1/extend', {
    summary: 'Say that events are still being worked on',
    gate: 'bus:consume',
    body: ExtendRequest,
    returns: Extended,
    problems: [...where, 'message_ids_required'],
    hidden: true,
  }),
} as const;
