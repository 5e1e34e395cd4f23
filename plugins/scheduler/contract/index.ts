import { counter, defineContract, del, get, Id, Page, PageQuery, post, put, task, Type } from '@platform/sdk/contract';
import { pages } from './pages.ts';
import { FiringRecord, NewSchedule, Schedule, ScheduleName } from './schema.ts';

const ofName = { name: ScheduleName };

export { Firing, takesFirings } from './schema.ts';

const reads = { gate: { any: ['cron:schedules:read', 'cron:schedules:write'] } } as const;
const operates = { gate: 'cron:schedules:admin', returns: Schedule, problems: ['schedule_not_found'] } as const;

/** The scheduler: posts to services at the times they asked for (G-CRON-01). */
export const scheduler = defineContract({
  id: 'cron',
  title: 'Scheduler',
  placement: { tier: 30 },
  capabilities: ['backends'],
  actions: {
    'cron:schedules:write': { title: 'Keep the own schedules', principals: ['machine'] },
    'cron:schedules:read': { title: 'See schedules and their firings' },
    'cron:schedules:admin': { title: 'Pause, resume and run schedules', principals: ['user', 'delegated'] },
  },
  problems: {
    cron_invalid: { status: 400, title: 'The times cannot be read', retry: 'never' },
    timezone_unknown: { status: 400, title: 'There is no such time zone', retry: 'never' },
    target_foreign: { status: 403, title: 'A service schedules calls of itself', retry: 'never' },
    schedule_taken: { status: 409, title: 'Another service has a schedule of this name', retry: 'never' },
    too_many_schedules: { status: 409, title: 'The service has too many schedules', retry: 'never' },
    schedule_not_found: { status: 404, title: 'No such schedule', retry: 'never' },
  },
  events: {},
  routes: {
    putSchedule: put('/v1/schedules/{name}', {
      params: ofName,
      summary: 'Make or change a schedule of the own service; the same again changes nothing',
      gate: 'cron:schedules:write',
      limit: 8_192,
      body: NewSchedule,
      returns: Schedule,
      problems: ['cron_invalid', 'timezone_unknown', 'target_foreign', 'schedule_taken', 'too_many_schedules'],
    }),
    listSchedules: get('/v1/schedules', {
      summary: 'Schedules by name; a workload sees its own',
      ...reads,
      query: {
        service: Type.Optional(Type.String({ title: 'Service', maxLength: 31 })),
        status: Type.Optional(Schedule.properties.status),
        ...PageQuery,
      },
      returns: Page(Schedule),
    }),
    getSchedule: get('/v1/schedules/{name}', {
      params: ofName,
      summary: 'One schedule',
      ...reads,
      returns: Schedule,
      problems: ['schedule_not_found'],
    }),
    listFirings: get('/v1/schedules/{name}/firings', {
      params: ofName,
      summary: 'The last fifty firings, newest first',
      ...reads,
      returns: Type.Object({ items: Type.Array(FiringRecord) }),
      problems: ['schedule_not_found'],
    }),
    deleteSchedule: del('/v1/schedules/{name}', {
      params: ofName,
      summary: 'Delete a schedule with its firings',
      gate: { any: ['cron:schedules:write', 'cron:schedules:admin'] },
      problems: ['schedule_not_found'],
    }),
    pauseSchedule: post('/v1/schedules/{name}/pause', { params: ofName, summary: 'Let it rest', ...operates }),
    resumeSchedule: post('/v1/schedules/{name}/resume', { params: ofName, summary: 'Let it go on, from its next time', ...operates }),
    runSchedule: post('/v1/schedules/{name}/run', { params: ofName, summary: 'Run it at once', ...operates }),
  },
  metrics: {
    firings: counter('Firings of schedules posted to their services'),
    firings_failed: counter('Firings that their service did not take'),
  },
  onEnvironmentDeleted: { purge: { schedules: 'schedules' } },
  tasks: {
    fire: task(Type.Object({ fire_id: Id }), {
      summary: 'Post a firing to its service',
      lane: 'env',
      attempts: 'unlimited',
      backoff: [1, 5, 30],
      timeout: '30s',
      slots: 16,
    }),
  },
  jobs: {
    due: { summary: 'Find schedules that are due, in the process that leads', every: '2s', runs: 'process', timeout: '30s' },
  },
  pages,
});
