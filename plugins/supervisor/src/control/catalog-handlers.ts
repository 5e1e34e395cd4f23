import type { RequestOf } from '@platform/sdk';
import type { supervisor } from '../../contract/index.ts';
import { isPlacementKey } from '../fleet/placement-gate.ts';
import type { Supervisor } from '../supervisor.ts';
import { askerOf, type ControlGate } from './control-gate.ts';

/** What the fleet is to run: read, and added to. */
export const catalogHandlers = ({ ctx, catalog }: Supervisor, gate: ControlGate) => ({
  catalog: async () => ({ items: catalog.entries().map(({ wanted: _, withdrawn: __, within: ___, version: ____, ...entry }) => entry) }),
  mergeCatalog: async ({ body: { entries }, ...request }: RequestOf<typeof supervisor, 'mergeCatalog'>) =>
    gate.pass(
      {
        route: 'merge-catalog',
        asker: askerOf(request),
        target: ctx.processes.ip,
        details: { service_types: entries.map(({ service_type }) => service_type) },
      },
      {
        target: () => {
          const builtin = entries.find(({ service_type }) => catalog.isBuiltin(service_type));
          if (builtin) throw ctx.problem('builtin_entry', { detail: `${builtin.service_type} belongs to the platform.` });
        },
        state: () => {
          const wrong = entries.flatMap(({ service_type, placement }) =>
            placement.filter(key => !isPlacementKey(key)).map(key => `${service_type}: ${key}`),
          );
          if (wrong.length === 0) return;
          ctx.log.error({ alert: 'captain.catalog.invalid', keys: wrong }, 'placement keys that mean nothing were refused');
          throw ctx.problem('invalid_placement', {
            detail: `Write pin:{ip}, pin:edge or anti:{service}. Not understood: ${wrong.join(', ')}.`,
          });
        },
      },
      async () => {
        const done = entries.map(entry => catalog.merge(entry));
        return { added: done.filter(each => each === 'added').length, updated: done.filter(each => each === 'updated').length };
      },
    ),
});
