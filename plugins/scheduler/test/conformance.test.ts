import { as, describeConformance } from '@platform/testing';
import plugin from '../src/plugin.ts';

describeConformance(
  plugin,
  {},
  {
    rows: async (host, env_id) => {
      const target = { service: 'shop', path: '/v1/internal/daily' };
      await host.by(as.machine('shop', 'cron:schedules:write')).putSchedule({
        params: { name: 'daily' },
        body: { cron: '* * * * *', timezone: 'UTC', target, env_id },
      });
    },
    unlisted: { listFirings: 'Nobody is there whom a schedule could call; the suite shows them.' },
  },
);
