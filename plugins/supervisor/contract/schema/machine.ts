import { type Static, Type } from '@platform/sdk/contract';

/** A machine of the fleet as it was last seen (G-CAP-05). */
export const Machine = Type.Object({
  ip: Type.String(),
  cpu_pct: Type.Number(),
  mem_pct: Type.Number(),
  used_mb: Type.Number(),
  saturated: Type.Boolean(),
  saturated_service: Type.Union([Type.String(), Type.Null()]),
  sampled_at: Type.String(),
  base: Type.Boolean(),
});
export type Machine = Static<typeof Machine>;

export const Alert = Type.Object({
  service_type: Type.String(),
  restarts: Type.Integer(),
  reason: Type.String(),
  log_path: Type.String(),
  at: Type.String(),
});

/** What is left of a process that ended and should not have. */
export const PostMortem = Type.Object({
  post_mortem_id: Type.String(),
  service_type: Type.String(),
  at: Type.String(),
  reason: Type.String(),
  restarts: Type.Integer(),
  ip: Type.String(),
  pid: Type.Union([Type.Integer(), Type.Null()]),
  build: Type.String(),
  log_path: Type.String(),
  log_lines: Type.Array(Type.String()),
  looks: Type.Array(Type.Object({ at: Type.String(), answer: Type.String() })),
});

export const Pending = Type.Object({
  key: Type.String({ description: '{kind}:{ip}' }),
  kind: Type.Union([Type.Literal('provision'), Type.Literal('deprovision')]),
  reason: Type.String(),
  created_at: Type.String(),
  expires_at: Type.String(),
});
export type Pending = Static<typeof Pending>;

export const Autoscaler = Type.Object({
  profile: Type.Union([Type.Literal('auto'), Type.Literal('manual'), Type.Literal('never')]),
  leader_ip: Type.Union([Type.String(), Type.Null()]),
  min: Type.Integer(),
  max: Type.Integer(),
  machines: Type.Integer(),
  cooldown_until: Type.Union([Type.String(), Type.Null()]),
  saturated_since: Type.Union([Type.String(), Type.Null()]),
  pending: Type.Array(Pending),
});
