import type { RequestOf } from '@platform/sdk';
import type { supervisor } from '../../contract/index.ts';
import type { Supervisor } from '../supervisor.ts';

type Asked<R extends keyof (typeof supervisor)['routes']> = RequestOf<typeof supervisor, R>;

/** How upgrades, the start and the end of the fleet get on. */
export const progressHandlers = (watch: Supervisor) => ({
  upgradeStatus: async ({ query }: Asked<'upgradeStatus'>) => {
    const rows = await watch.rows();
    return {
      items: await watch.upgrades.log.list(query.instance_key, [
        ...new Set([...rows.map(({ ip, port }) => `${ip}:${port}`), ...watch.upgrades.known.map(({ old_key }) => old_key)]),
      ]),
    };
  },
  upgradeStream: ({ signal }: Asked<'upgradeStream'>) =>
    watch.upgrades.stream.read(
      signal,
      watch.upgrades.known.map(progress => ({ event: 'progress', data: progress })),
    ),
  async *startupStream({ signal }: Asked<'startupStream'>) {
    const alerts = await watch.alerts.list();
    yield* watch.startup.read(
      signal,
      alerts.map(alert => ({ event: 'alert', data: alert })),
    );
  },
  shutdownStream: ({ signal }: Asked<'shutdownStream'>) => watch.shutdown.read(signal),
});
