import { get, post, SortQuery, Type } from '@platform/sdk/contract';
import { Alert, Autoscaler, Machine, Pending, PostMortem } from '../schema/machine.ts';

const ofKey = { key: Type.String({ maxLength: 300 }) };

const gate = 'captain:admin';
const decided = {
  gate,
  returns: Type.Object({ key: Type.String(), decision: Type.String() }),
  status: 200,
  problems: ['pending_not_found', 'channel_restricted'],
} as const;

/** Machines, what was given up on, and decisions that wait for somebody (G-CAP-05, G-CAP-07, G-CAP-08). */
export const machineRoutes = {
  machines: get('/v1/captain/machines', {
    summary: 'Machines of the fleet',
    gate,
    query: SortQuery('ip', 'cpu_pct', 'mem_pct', 'used_mb'),
    returns: Type.Object({ items: Type.Array(Machine) }),
  }),
  alerts: get('/v1/captain/alerts', {
    summary: 'Services that were given up on',
    gate,
    returns: Type.Object({ items: Type.Array(Alert) }),
  }),
  postMortems: get('/v1/captain/post-mortems', {
    summary: 'What is left of processes that ended',
    gate,
    query: {
      service_type: Type.Optional(Type.String({ maxLength: 31 })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    },
    returns: Type.Object({ items: Type.Array(PostMortem) }),
  }),
  shutdown: post('/v1/captain/shutdown', {
    summary: 'End this machine: its services, then the supervisor',
    gate,
    body: Type.Object(
      {
        reason: Type.Optional(Type.String({ maxLength: 200 })),
        drain_s: Type.Optional(Type.Integer({ minimum: 0, maximum: 600, default: 30 })),
      },
      { additionalProperties: false },
    ),
    returns: Type.Object({ operation_id: Type.String() }),
    status: 202,
    problems: ['channel_restricted'],
  }),
  autoscaler: get('/v1/captain/autoscaler', { summary: 'How machines are added and taken away', gate, returns: Autoscaler }),
  decide: post('/v1/captain/autoscaler/approve', {
    ...decided,
    summary: 'Decide about a machine',
    body: Type.Object(
      { key: Type.String({ maxLength: 80 }), decision: Type.Union([Type.Literal('approve'), Type.Literal('reject')]) },
      { additionalProperties: false },
    ),
  }),
  pending: get('/v1/captain/autoscaler/pending', {
    summary: 'Decisions that wait',
    gate,
    returns: Type.Object({ items: Type.Array(Pending) }),
  }),
  approve: post('/v1/captain/autoscaler/pending/{key}/approve', { params: ofKey, ...decided, summary: 'Approve' }),
  reject: post('/v1/captain/autoscaler/pending/{key}/reject', { params: ofKey, ...decided, summary: 'Reject' }),
} as const;
