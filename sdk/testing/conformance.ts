import { describe, expect, test } from 'vitest';
import type { AnyContract, AnyRoute } from '@platform/sdk';
import { checkManifest } from '@platform/kernel/host/plugin/checks';
import { formatFinding } from '@platform/kernel/host/plugin/finding';
import { gateActions } from '@platform/kernel/http/operation';
import { pageDefinition } from '@platform/kernel/http/pages/page-definition';
import { boot, type BootOptions, type BootedHost } from './boot.ts';
import { as, type Persona } from './persona.ts';

type Uses = Readonly<Record<string, AnyContract>>;
/** Made by the kernel in every schema; it looks after them itself. */
const KERNEL_TABLES = new Set(['outbox', 'inbox', 'work_tasks', 'work_jobs', 'idempotent_answers', 'consumer_leads']);
const DUMMY_ID = '01900000-0000-7000-8000-00000000abcd';
const sample = (path: string) => path.replaceAll(/\{\*?[A-Za-z_]+\}/g, DUMMY_ID);

/** A body that takes members it does not name says so. */
const isOpen = (body: object): boolean => (body as { additionalProperties?: unknown }).additionalProperties === true;

/**
 * What every plugin must do, in-house or not (house 19): refuse the nameless, the wrong kind and the unscoped on every gated route, refuse
 * unknown members, answer in the declared shapes, describe itself truly, migrate twice, finish requests while draining, say when it is not
 * ready.
 */
export function describeConformance<C extends AnyContract, U extends Uses>(
  plugin: { readonly contract: C; readonly uses: U } & object,
  options: BootOptions<U> = {},
  { ownsAccess = false } = {},
): void {
  const { base, actions } = plugin.contract;
  const routes = Object.entries(plugin.contract.routes as Record<string, AnyRoute>);
  const gated = routes.filter(([, { door, options: route }]) => door === 'request' && gateActions(route.gate) !== undefined);

  describe(`conformance of ${base.id}`, () => {
    const use = async (work: (host: BootedHost<C>) => Promise<void>) => {
      shared ??= boot<C, U>(plugin, options);
      await work(await shared);
    };
    let shared: Promise<BootedHost<C>> | undefined;

    test('the contract passes the checks', async () => {
      await use(async host => {
        expect(
          checkManifest(host.manifest)
            .filter(({ id }) => id.startsWith('E'))
            .map(formatFinding),
        ).toEqual([]);
      });
    });

    test('every table with rows of environments says what becomes of them when theirs is deleted', async () => {
      await use(async host => {
        const { purge = {}, keep = {} } = host.manifest.onEnvironmentDeleted ?? {};
        const tables = await tablesOfEnvironments(host);
        expect(tables.filter(table => !(table in purge) && !(table in keep))).toEqual([]);
        expect(Object.keys(purge).filter(table => !tables.includes(table))).toEqual([]);
      });
    });

    test('every gated route refuses the nameless with 401 and the way to be named', async () => {
      await use(async host => {
        for (const [name, { method, path }] of gated) {
          const answer = await host.fetch(sample(path), { method });
          expect([name, answer.status, answer.json['code']]).toEqual([name, 401, 'unauthenticated']);
          expect(answer.headers['www-authenticate']).toContain('Bearer');
          expect(answer.headers['content-type']).toContain('application/problem+json');
        }
      });
    });

    test('every gated route refuses the unscoped, and the wrong kind, with 403', async () => {
      await use(async host => {
        for (const [name, { method, path, options: route }] of gated) {
          const declared = (gateActions(route.gate) ?? []).map(action => actions[action]);
          const machineOnly = declared.every(action => action?.principals?.every((kind: string) => kind === 'machine') ?? false);
          if (typeof route.gate === 'object' && 'authenticated' in route.gate) continue;
          if (declared.length === 0) {
            // Any signed-in person will do: a workload is none.
            const refused = await host.fetch(sample(path), { method, persona: as.machine('probe') });
            expect([name, refused.status, refused.json['code']]).toEqual([name, 403, 'user_required']);
            continue;
          }
          const answer = await host.fetch(`${sample(path)}?target_env_id=${as.user().envId}`, { method, persona: as.user() });
          expect([name, answer.status]).toEqual([name, 403]);
          expect(answer.json['code']).toBe(machineOnly ? 'm2m_required' : 'policy_denied');
        }
      });
    });

    test('F-27 its gauges are for workloads and for who may read the service, and for nobody else', async () => {
      await use(async host => {
        expect((await host.fetch('/v1/metrics')).status).toBe(401);
        if (ownsAccess) return;
        const vertical = base.vertical && base.vertical !== 'platform' ? `${base.vertical}:` : '';
        const status = async (persona: Persona) => (await host.fetch('/v1/metrics', { persona })).status;
        expect([
          await status(as.user()),
          await status(as.user(`${vertical}${base.id}:metrics:read`, `${vertical}${base.id}:read`)),
        ]).toEqual([403, 200]);
        expect((await host.fetch('/v1/metrics', { as: await host.workload(base.id) })).status).toBe(200);
      });
    });

    test('F-28 F-34 a wrong method, an unknown path and an Accept that admits nothing are refused in problem form, which nobody may take for something else', async () => {
      await use(async host => {
        const refused = async (path: string, method: string, accept = 'application/json') => {
          const answer = await host.fetch(path, { method, headers: { accept } });
          expect([path, answer.headers['content-type'], answer.headers['x-content-type-options']]).toEqual([
            path,
            expect.stringContaining('application/problem+json'),
            'nosniff',
          ]);
          return answer;
        };
        const wrong = await refused('/v1/health', 'DELETE');
        expect([wrong.status, wrong.json['code'], wrong.headers['allow']]).toEqual([405, 'method_not_allowed', 'GET, HEAD']);
        expect((await refused('/v1/nothing-is-here', 'GET')).status).toBe(404);
        expect((await refused('/v1/health', 'GET', 'image/png')).json).toMatchObject({ status: 406, code: 'not_acceptable' });
        expect((await host.fetch('/v1/health')).headers['x-content-type-options']).toBe('nosniff');
      });
    });

    test('unknown members of a body are refused with a pointer to each', async () => {
      await use(async host => {
        for (const [name, { method, path, options: route }] of gated.filter(
          ([, { options: route }]) => route.body && !isOpen(route.body),
        )) {
          const [action = ''] = gateActions(route.gate) ?? [];
          if (actions[action]?.principals?.every((kind: string) => kind === 'machine')) continue;
          const persona = as.user(
            ...(gateActions(route.gate) ?? []).map(scope =>
              base.vertical && base.vertical !== 'platform' ? `${base.vertical}:${scope}` : scope,
            ),
          );
          // Whoever says itself what people hold has never heard of this one: it is asked with the scopes in hand.
          if (ownsAccess) {
            const call = (host.by(persona) as unknown as Record<string, (input: object) => Promise<unknown>>)[name];
            const refused = await call?.({ targetEnvId: persona.envId, body: { no_such_member: 1 } }).catch((error: unknown) => error);
            expect([name, refused]).toEqual([name, expect.objectContaining({ status: 400, code: 'validation_failed' })]);
            expect((refused as { extra: { errors: { pointer: string }[] } }).extra.errors.map(({ pointer }) => pointer)).toContain(
              '/no_such_member',
            );
            continue;
          }
          const answer = await host.fetch(`${sample(path)}?target_env_id=${persona.envId}`, {
            method,
            persona,
            body: JSON.stringify({ no_such_member: 1 }),
          });
          expect([name, answer.status, answer.json['code']]).toEqual([name, 400, 'validation_failed']);
          expect((answer.json['errors'] as { pointer: string }[]).map(({ pointer }) => pointer)).toContain('/no_such_member');
        }
      });
    });

    test('the interface description names every public path once, with an operation id of its own', async () => {
      await use(async host => {
        const { json } = await host.fetch('/openapi.json');
        expect(json['openapi']).toBe('3.1.0');
        const operations = Object.values(json['paths'] as Record<string, Record<string, { operationId: string }>>).flatMap(path =>
          Object.values(path).map(({ operationId }) => operationId),
        );
        const requests = routes
          .filter(([, { door, options: route }]) => door === 'request' && !route.hidden)
          .map(([name]) => `${base.id}.${name}`);
        expect(operations).toEqual(expect.arrayContaining(requests));
      });
    });

    test('health reports the build, readiness every check, and pages resolve with columns of real rows', async () => {
      await use(async host => {
        const health = await host.fetch('/v1/health');
        expect(health.json).toMatchObject({ service: base.id, build: 'test' });
        const readiness = await host.fetch('/v1/readiness');
        expect([readiness.status, readiness.json['status']]).toEqual([200, 'ready']);
        for (const name of Object.keys(host.manifest.pages))
          expect(pageDefinition(host.manifest, name)).toMatchObject({ schema: 'platform.admin-ui/1', page: name });
      });
    });

    test('migrations run a second time and change nothing', async () => {
      await use(async host => {
        await host.process.instances.get(base.id)?.migrate();
      });
    });

    test('draining refuses new work with 503 and Retry-After, and ends', async () => {
      const host = await (shared as Promise<BootedHost<C>>);
      await host.process.drain();
      const answer = await host.fetch('/openapi.json');
      expect([answer.status, answer.json['code']]).toEqual([503, 'draining']);
      expect(answer.headers['retry-after']).toBeDefined();
      await host[Symbol.asyncDispose]();
      // Which promises these checks alone have seen kept; the plugin's own tests bring the rest.
      process.stdout.write(`contract coverage of ${host.coverage}\n`);
    });
  });
}

/** Tables of the service's own with a column `env_id`, whose rows do not go with rows of another of its tables. */
async function tablesOfEnvironments<C extends AnyContract>(host: BootedHost<C>): Promise<string[]> {
  const sql = await host.sql();
  const rows = await sql<{ name: string }[]>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
    where n.nspname = current_schema() and c.relkind in ('r', 'p') and not c.relispartition and a.attname = 'env_id' and not a.attisdropped
      and not exists (select from pg_constraint where conrelid = c.oid and contype = 'f' and confdeltype = 'c')
    order by 1`;
  return rows.map(({ name }) => name).filter(name => !KERNEL_TABLES.has(name));
}
