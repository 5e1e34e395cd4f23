import { type Static, Type } from '@platform/sdk/contract';

export const InstanceStatus = Type.Union([
  Type.Literal('Starting'),
  Type.Literal('Active'),
  Type.Literal('Inactive'),
  Type.Literal('Stopping'),
  Type.Literal('Stopped'),
  Type.Literal('Killed'),
]);

/** One instance of a service (G-CAP-01). */
export const Instance = Type.Object({
  instance_key: Type.String({ description: '{ip}:{port}' }),
  service_type: Type.String(),
  title: Type.String(),
  start_priority: Type.Integer(),
  ip: Type.String(),
  port: Type.Integer(),
  pid: Type.Integer(),
  status: InstanceStatus,
  version: Type.String(),
  metrics: Type.Object({ cpu_pct: Type.Number(), mem_mb: Type.Number(), latency_ms: Type.Number(), active_connections: Type.Number() }),
  restarts: Type.Integer(),
  api_calls: Type.Integer(),
  today: Type.Object(
    { requests: Type.Integer(), errors: Type.Integer() },
    { description: 'What all instances of the service answered since its day was last summed up' },
  ),
  started_at: Type.String(),
  last_health_at: Type.Union([Type.String(), Type.Null()]),
  failures: Type.Integer(),
  log_path: Type.String(),
});
export type Instance = Static<typeof Instance>;

/** A process that an instance has started itself. */
export const WorkerProcess = Type.Object({ pid: Type.Integer(), cpu_ms: Type.Integer(), mem_mb: Type.Integer() });

export const Accepted = Type.Object({ operation_id: Type.String(), instance_key: Type.String(), action: Type.String() });

/** How far an upgrade is (G-CAP-04). */
export const UpgradeProgress = Type.Object({
  operation_id: Type.String(),
  service_type: Type.String(),
  old_key: Type.String(),
  new_key: Type.Union([Type.String(), Type.Null()]),
  phase: Type.Union([
    Type.Literal('starting'),
    Type.Literal('spawned'),
    Type.Literal('active'),
    Type.Literal('stable'),
    Type.Literal('draining'),
    Type.Literal('complete'),
    Type.Literal('aborted'),
    Type.Literal('rolled_back'),
  ]),
  percent: Type.Integer(),
  message: Type.String(),
  reason: Type.Optional(Type.String()),
  started_at: Type.String(),
  updated_at: Type.String(),
});
export type UpgradeProgress = Static<typeof UpgradeProgress>;

export const Started = Type.Object({ started: Type.Array(Type.Object({ service_type: Type.String(), instance_key: Type.String() })) });
