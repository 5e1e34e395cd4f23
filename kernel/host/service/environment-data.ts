import { type AnyRoute, Id, post, type Request, Type } from '@platform/sdk';
import { kernelProblem } from '../../base/kernel-problem.ts';
import type { Manifest } from '../../base/manifest.ts';
import type { MountedRoute, RouteHandler } from '../../http/service-app.ts';
import { nameEnvironment } from '../../storage/schema/row-security.ts';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';

const MOST_ENVIRONMENTS = 100;
/** Rows of one statement: a large environment goes in steps, and holds no lock for long. */
const STEP = 5_000;
const Asked = Type.Object({ env_ids: Type.Array(Id, { minItems: 1, maxItems: MOST_ENVIRONMENTS }) });
const Counts = Type.Object({ counts: Type.Record(Type.String(), Type.Integer()) });
type Wanted = Request<Readonly<Record<string, string>>, unknown, { env_ids: string[] }>;

/**
 * What a service that purges says and does about environments: how much of each noun it holds of them, and that all of it goes. Both for
 * workloads of the platform alone; a second purge finds nothing and answers the same.
 */
export function environmentRoutes(manifest: Manifest, pool: PostgresPool): Record<string, MountedRoute> {
  const tables = Object.entries(manifest.onEnvironmentDeleted?.purge ?? {});
  if (tables.length === 0) return {};
  const gate = { workload: 'What deletes environments is a service of the platform', or: [] };
  const shape = { gate, env: 'any', hidden: true, body: Asked, returns: Counts, status: 200 } as const;
  const mounted = (
    route: AnyRoute,
    work: (envIds: readonly string[], signal: AbortSignal) => Promise<Record<string, number>>,
  ): MountedRoute => {
    const handler = async ({ body, caller, signal }: Wanted) => {
      if (caller?.vertical !== 'platform') throw kernelProblem('m2m_required', { detail: 'Only services of the platform ask this.' });
      return { counts: await work(body.env_ids, signal) };
    };
    return { route, handler: handler as unknown as RouteHandler };
  };
  return {
    environmentCounts: mounted(
      post('/v1/internal/environments/counts', { summary: 'How much is held of environments', ...shape }),
      envIds => count(pool, tables, envIds),
    ),
    environmentPurge: mounted(
      post('/v1/internal/environments/purge', { summary: 'Delete what is held of deleted environments', ...shape }),
      (envIds, signal) => purge(pool, tables, envIds, signal),
    ),
  };
}

type Tables = readonly (readonly [table: string, noun: string])[];

async function count({ raw }: PostgresPool, tables: Tables, envIds: readonly string[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [table, noun] of tables) {
    const [row] = await raw.begin(async tx => {
      void nameEnvironment(tx);
      return tx<{ count: number }[]>`select count(*)::int as count from ${tx(table)} where env_id::text = any(${envIds as string[]})`;
    });
    if (row && row.count > 0) counts[noun] = (counts[noun] ?? 0) + row.count;
  }
  return counts;
}

async function purge(
  { raw }: PostgresPool,
  tables: Tables,
  envIds: readonly string[],
  signal: AbortSignal,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [table, noun] of tables) {
    for (let gone = STEP; gone >= STEP; ) {
      signal.throwIfAborted();
      gone = await raw.begin(async tx => {
        void nameEnvironment(tx);
        const ids = envIds as string[];
        const held = tx`select ctid from ${tx(table)} where env_id::text = any(${ids}) limit ${STEP}`;
        return (await tx`delete from ${tx(table)} where ctid = any(array(${held}))`).count;
      });
      if (gone > 0) counts[noun] = (counts[noun] ?? 0) + gone;
    }
  }
  return counts;
}
