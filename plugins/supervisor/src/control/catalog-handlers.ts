import type { RequestOf } from '@platform/sdk';
import type { supervisor } from '../../contract/index.ts';
import { isPlacementKey } from '../fleet/placement-gate.ts';
import type { Supervisor } from '../supervisor.ts';

/** What the fleet is to run: read, and added to. */
export const catalogHandlers = ({ ctx, catalog }: Supervisor) => ({
  catalog: async () => ({ items: catalog.entries().map(({ wanted: _, withdrawn: __, within: ___, version: ____, ...entry }) => entry) }),
  mergeCatalog: async ({ body }: RequestOf<typeof supervisor, 'mergeCatalog'>) => {
    const builtin = body.entries.find(({ service_type }) => catalog.isBuiltin(service_type));
    if (builtin) throw ctx.problem('builtin_entry', { detail: `${builtin.service_type} belongs to the platform.` });
    const wrong = body.entries.flatMap(({ service_type, placement }) =>
      placement.filter(key => !isPlacementKey(key)).map(key => `${service_type}: ${key}`),
    );
    if (wrong.length > 0) {
      ctx.log.error({ alert: 'captain.catalog.invalid', keys: wrong }, 'placement keys that mean nothing were refused');
      throw ctx.problem('invalid_placement', {
        detail: `Write pin:{ip}, pin:edge or anti:{service}. Not understood: ${wrong.join(', ')}.`,
      });
    }
    const done = body.entries.map(entry => catalog.merge(entry));
    return { added: done.filter(each => each === 'added').length, updated: done.filter(each => each === 'updated').length };
  },
});
