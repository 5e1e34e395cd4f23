import { Id, Instant, Type, type Static } from '@platform/sdk/contract';
import { ProduceRequest } from './event.ts';

/** How far ahead an event can be scheduled (G-BUS-07). */
export const HORIZON_DAYS = 366;

export const ScheduleRequest = Type.Object({ ...ProduceRequest.properties, deliver_at: Instant });
export type ScheduleRequest = Static<typeof ScheduleRequest>;
export const Scheduled = Type.Object({ schedule_id: Id, deliver_at: Type.String() });
export type Scheduled = Static<typeof Scheduled>;
export const ScheduledRow = Type.Object({
  schedule_id: Id,
  event_type: Type.String(),
  stream_family: Type.String(),
  deliver_at: Type.String(),
  created_at: Type.String(),
});
export type ScheduledRow = Static<typeof ScheduledRow>;
