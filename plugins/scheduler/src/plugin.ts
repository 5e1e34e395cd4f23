import { definePlugin } from '@platform/sdk';
import { scheduler } from '../contract/index.ts';
import { Firings } from './firings.ts';
import { Leadership } from './leadership.ts';
import { Schedules } from './schedules.ts';

export default definePlugin(scheduler, {
  migrations: new URL('../migrations/', import.meta.url),

  setup(ctx) {
    const schedules = new Schedules(ctx);
    const firings = new Firings(ctx, schedules);
    const leadership = new Leadership(ctx);
    return {
      routes: {
        putSchedule: request => schedules.put(request),
        listSchedules: ({ query, caller }) => schedules.list(query, caller),
        getSchedule: ({ params, caller }) => schedules.get(params.name, caller),
        listFirings: async ({ params, caller }) => ({ items: await firings.list(params.name, caller) }),
        deleteSchedule: ({ params, caller }) => schedules.remove(params.name, caller),
        pauseSchedule: ({ params, caller }) => schedules.rest(params.name, true, caller),
        resumeSchedule: ({ params, caller }) => schedules.rest(params.name, false, caller),
        runSchedule: ({ params, caller }) => firings.runNow(params.name, caller),
      },
      tasks: { fire: (payload, task) => firings.perform(payload, task) },
      jobs: { due: async signal => void ((await leadership.held()) && (await firings.due(signal))) },
      drain: () => leadership.release(),
    };
  },
});
