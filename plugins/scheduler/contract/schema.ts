import { Id, Instant, type Static, Type } from '@platform/sdk/contract';

const nullable = Type.Union([Type.String(), Type.Null()]);

/** What a target is posted (G-CRON-01). It may come more than once: `fire_id` is the same for the same schedule and the same time. */
export const Firing = Type.Object({
  schedule: Type.String(),
  fire_id: Id,
  /** The time it was due at, or the moment somebody asked for it. */
  fire_at: Instant,
});
export type Firing = Static<typeof Firing>;

/** An action of a service that has schedules, to gate their target with: the scheduler is given it. */
export const takesFirings = { title: 'Do what is scheduled', principals: ['machine'], bound: true, callers: ['cron'] } as const;

export const ScheduleName = Type.String({ pattern: '^[a-z][a-z0-9-]{0,62}$' });
export const NewSchedule = Type.Object({
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  cron: Type.String({ minLength: 9, maxLength: 120, description: 'Minute, hour, day, month, weekday' }),
  /** A zone of the IANA database. */
  timezone: Type.String({ minLength: 1, maxLength: 64 }),
  target: Type.Object({
    service: Type.String({ pattern: '^[a-z][a-z0-9]{0,30}$' }),
    path: Type.String({ pattern: '^/v1/internal(?:/[A-Za-z0-9_~:-][A-Za-z0-9._~:-]*)+$', maxLength: 200 }),
  }),
  env_id: Id,
});
export type NewSchedule = Static<typeof NewSchedule>;

export const Schedule = Type.Object({
  name: Type.String(),
  service: Type.String(),
  ...NewSchedule.properties,
  status: Type.Union([Type.Literal('active'), Type.Literal('paused')], { title: 'State' }),
  next_at: nullable,
  last_at: nullable,
  last_status: nullable,
  created_at: Type.String(),
  updated_at: Type.String(),
});
export type Schedule = Static<typeof Schedule>;

export const FiringRecord = Type.Object({
  fire_id: Id,
  fire_at: Type.String(),
  /** Whether somebody asked for it. */
  manual: Type.Boolean(),
  status: Type.Union([Type.Literal('waiting'), Type.Literal('done'), Type.Literal('failed')]),
  attempts: Type.Integer(),
  http_status: Type.Union([Type.Integer(), Type.Null()]),
  code: nullable,
  finished_at: nullable,
});
export type FiringRecord = Static<typeof FiringRecord>;
