import type { Caller, RequestOf } from '@platform/sdk';
import type { supervisor } from '../../contract/index.ts';
import type { Machines } from '../machines/machines.ts';
import type { Supervisor } from '../supervisor.ts';
import { catalogHandlers } from './catalog-handlers.ts';
import { askerOf, type ControlGate } from './control-gate.ts';
import { inOrder } from './in-order.ts';
import type { ActionName, Operations } from './operations.ts';
import { progressHandlers } from './progress-handlers.ts';
import type { Views } from './views.ts';

type Asked<R extends keyof (typeof supervisor)['routes']> = RequestOf<typeof supervisor, R>;

const LOG_LINES = 200;
const POST_MORTEMS = 20;

/** Handlers of everything operators ask. */
export function controlHandlers({
  watch,
  views,
  operations,
  machines,
  gate,
}: {
  watch: Supervisor;
  views: Views;
  operations: Operations;
  machines: Machines;
  gate: ControlGate;
}) {
  const { ctx } = watch;
  const act =
    (action: ActionName) =>
    ({ params, body, ...request }: { params: { instance_key: string }; body?: unknown; caller: Caller | undefined; ip: string }) =>
      operations.act(action, params.instance_key, askerOf(request), (body ?? {}) as { force?: boolean; version?: string });
  /** The row of an instance of this machine. */
  const here = async (key: string, what: string) => {
    const row = await operations.row(key);
    if (!row) throw ctx.problem('instance_not_found', { detail: `No instance answers at ${key}.` });
    if (row.ip !== ctx.processes.ip) throw ctx.problem('elsewhere', { detail: `${what} on ${row.ip}.` });
    return row;
  };
  return {
    services: async ({ query }: Asked<'services'>) => ({ items: inOrder(await views.services(query), query) }),
    service: async ({ params }: Asked<'service'>) => {
      const found = (await views.services({})).find(({ instance_key }) => instance_key === params.instance_key);
      if (!found) throw ctx.problem('instance_not_found', { detail: `No instance answers at ${params.instance_key}.` });
      return found;
    },
    serviceLog: async ({ params, query }: Asked<'serviceLog'>) => {
      const row = await here(params.instance_key, 'Its log lies');
      return { service_type: row.service_type, lines: [...(await ctx.processes.logTail(row.service_type, query.lines ?? LOG_LINES))] };
    },
    serviceProcesses: async ({ params }: Asked<'serviceProcesses'>) => {
      const { service_type, pid } = await here(params.instance_key, 'It runs');
      const items = ctx.processes.companions({ pid }).map(each => ({
        pid: each.pid,
        cpu_ms: Math.round(each.cpu_ms),
        mem_mb: Math.round(each.rss_bytes / 1_048_576),
      }));
      return { service_type, items };
    },
    restart: act('restart'),
    stop: act('stop'),
    drain: act('drain'),
    upgrade: act('upgrade'),
    abortUpgrade: act('abort-upgrade'),
    rollback: act('rollback'),
    unknownAction: async ({ params }: Asked<'unknownAction'>): Promise<void> => {
      throw ctx.problem('unknown_action', {
        detail: `'${params.action}' is none of restart, stop, drain, upgrade, abort-upgrade, rollback.`,
      });
    },
    ...progressHandlers(watch),
    ...catalogHandlers(watch, gate),
    startServices: ({ body, ...request }: Asked<'startServices'>) =>
      operations.start(body.service_types, 'start-services', askerOf(request)),
    instances: ({ body, ...request }: Asked<'instances'>) => operations.start(body.service_types, 'instances', askerOf(request)),
    machines: async ({ query }: Asked<'machines'>) => ({ items: inOrder(await watch.samples.machines(), query) }),
    alerts: async () => ({ items: [...(await watch.alerts.list())] }),
    postMortems: async ({ query }: Asked<'postMortems'>) => ({
      items: (await watch.alerts.postMortems(query.service_type, query.limit ?? POST_MORTEMS)) as never,
    }),
    shutdown: ({ body, ...request }: Asked<'shutdown'>) => operations.shutdown(askerOf(request), body),
    autoscaler: async () => machines.state(),
    decide: ({ body, ...request }: Asked<'decide'>) => machines.decide(body.key, body.decision, askerOf(request)),
    pending: async () => ({ items: (await machines.state()).pending }),
    approve: ({ params, ...request }: Asked<'approve'>) => machines.decide(params.key, 'approve', askerOf(request)),
    reject: ({ params, ...request }: Asked<'reject'>) => machines.decide(params.key, 'reject', askerOf(request)),
  };
}
