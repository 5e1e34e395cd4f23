import { del, get, Id, Page, PageQuery, post, Type } from '@platform/sdk/contract';
import { Scheduled, ScheduledRow, ScheduleRequest } from '../schema/schedule.ts';
import { refusedEvent } from './produce-routes.ts';

/** Publishing one event later, once; what recurs belongs to the scheduler (doc2 §Event bus service 7). */
export const scheduleRoutes = {
  schedule: post('/v1/schedule', {
    summary: 'Publish one event at a later time',
    gate: 'bus:produce',
    idempotency: 'own',
    body: ScheduleRequest,
    returns: Scheduled,
    status: 201,
    problems: [...refusedEvent, 'deliver_at_too_far', 'key_published', 'inbox_failed'],
  }),
  listScheduled: get('/v1/scheduled', {
    summary: 'Delayed events that wait, the latest made first',
    gate: 'bus:consume',
    query: {
      env_id: Type.Optional(Id),
      include: Type.Optional(
        Type.Union([Type.Literal('due'), Type.Literal('all')], {
          description: 'due: only those whose time has come; all: every one that waits',
        }),
      ),
      ...PageQuery,
    },
    returns: Page(ScheduledRow),
    problems: ['env_required', 'env_mismatch'],
  }),
  cancelScheduled: del('/v1/scheduled/{schedule_id}', {
    params: { schedule_id: Id },
    summary: 'Take back a delayed event',
    gate: 'bus:produce',
    problems: ['unknown_schedule', 'schedule_delivered', 'event_ownership'],
  }),
} as const;
