import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type AnyContract,
  type LimitOptions,
  type PlatformContext,
  ProblemError,
  type ProcessHost,
  type ProcessLimitOptions,
  type SigningAuthority,
} from '@platform/sdk';
import { TimedCache } from '../../base/cache.ts';
import { KERNEL_PROBLEMS, kernelProblem, type KernelProblemCode } from '../../base/kernel-problem.ts';
import type { Manifest } from '../../base/manifest.ts';
import { page } from '../../http/paging.ts';
import { requireVersion } from '../../http/precondition.ts';
import { cronTimes } from '../../work/cron-times.ts';
import { reseal } from '../../work/reseal.ts';
import { secretsPort } from '../../secrets/secrets-port.ts';
import { locksOf } from '../../storage/lock.ts';
import { ProcessLimit } from '../../storage/limits/process-limit.ts';
import { RateLimit } from '../../storage/limits/rate-limit.ts';
import { runtimeConsumer } from '../service/service-consumers.ts';
import { pluginActions } from './actions/plugin-actions.ts';
import { Transactions } from './transactions.ts';
import { capability } from './capability.ts';
import { pluginCatalog } from './plugin-catalog.ts';
import type { PluginContextParts } from './plugin-context-parts.ts';
import { pluginAuth, pluginPolicy } from './plugin-policy.ts';

/** Builds what a plugin may touch, and nothing else: capabilities it did not declare are not there. */
export function pluginContext(parts: PluginContextParts): PlatformContext<AnyContract> {
  const { manifest, pool } = parts;
  const transactions = new Transactions(parts);
  const catalog = pluginCatalog(parts);

  const context: PlatformContext<AnyContract> = {
    config: parts.config as never,
    log: parts.log,
    db: {
      sql: pool.sql,
      tx: transactions.tx,
      one: transactions.one,
      of: transactions.of,
      ofAll: transactions.ofAll,
      listen: (channel, listener) => pool.listen(channel, listener),
    },
    clock: parts.clock,
    every: (ms, work) => parts.clock.every(ms, work),
    cron: cronTimes,
    services: clientsOf(parts),
    events: { subscribe: (wanted, handler) => runtimeConsumer(parts, wanted, handler) },
    tasks: {
      left: async (name, key) => ((await parts.tasks()?.left(name, key)) ?? []) as never,
      attempt: async (name, key) => (await parts.tasks()?.attempt(name, key)) ?? 'absent',
    },
    metrics: parts.metrics as never,
    keys: parts.keys as never,
    reseal: (name, places, signal) => resealed(parts, name, places, signal),
    secrets: secretsPort(parts.secrets),
    policy: pluginPolicy(parts),
    catalog,
    actions: pluginActions(parts, changed => catalog.follow(changed)),
    platform: parts.platform,
    cache: options => new TimedCache(options, () => parts.clock.now().getTime()),
    limit: limitsOf(parts),
    lock: locksOf(parts.kv, manifest.id, parts.log),
    files: { directory: name => ownFolder(parts.platform.dataDir, manifest, name) },
    kv: capability(manifest, 'key-value', parts.kv),
    backends: capability(manifest, 'backends', parts.pools.facade(parts.workloadOf)),
    authority: capability(manifest, 'authority', parts.authority ?? ({} as SigningAuthority)),
    listen: (door, server, at) => listen(parts, door, server, at),
    processes: capability(manifest, 'processes', parts.processes ?? ({} as ProcessHost)),
    auth: pluginAuth(parts),
    tokens: parts.tokens,
    page: (query, spec, read) => page(pool.sql, query, spec, read),
    requireVersion,
    problem: (code, more) => declaredProblem(manifest, code as string, more),
    own: resource => parts.owned.own(resource),
  };
  return Object.freeze(context);
}

/** A typed client for every contract the plugin uses. */
function clientsOf({ manifest, plugin, caller, workloadOf }: PluginContextParts): PlatformContext<AnyContract>['services'] {
  return Object.fromEntries(
    Object.entries(plugin.uses as Record<string, AnyContract>).map(([name, contract]) => [
      name,
      caller.client(workloadOf(callerAt(manifest, contract.base.id as string)), contract.base.id, contract.routes, contract.problems),
    ]),
  ) as never;
}

function limitsOf({ manifest, kv, log, clock }: PluginContextParts): PlatformContext<AnyContract>['limit'] {
  return ((options: LimitOptions | ProcessLimitOptions) =>
    options.counts === 'process'
      ? new ProcessLimit(options, () => clock.now().getTime())
      : new RateLimit(kv, manifest.id, log, options)) as PlatformContext<AnyContract>['limit'];
}

async function resealed(
  { manifest, keys, pool, log }: PluginContextParts,
  ...[name, places, signal]: Parameters<PlatformContext<AnyContract>['reseal']>
): Promise<void> {
  const box = keys[name];
  if (!box || !('seal' in box)) throw new Error(`${manifest.id} declares no key ${name} that seals`);
  await reseal({ service: manifest.id, tasks: manifest.tasks, pool, log }, { name, box }, places, signal);
}

/** Has a server listen behind a declared door: on the socket that was handed to this process, or on one of its own. */
async function listen(
  { manifest, listeners }: PluginContextParts,
  ...[door, server, { port, address }]: Parameters<PlatformContext<AnyContract>['listen']>
): Promise<boolean> {
  if (!Object.values(manifest.routes).some(route => route.door === 'listener' && route.path === door))
    throw new Error(`${manifest.id} declares no listener ${door}`);
  const fd = listeners[door];
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(fd === undefined ? { port, host: address } : { fd }, () => resolve());
  });
  return fd !== undefined;
}

function declaredProblem(manifest: Manifest, code: string, more: ConstructorParameters<typeof ProblemError>[3]): ProblemError {
  const decl = manifest.problems[code];
  if (decl) return new ProblemError(manifest.id, code, decl, more);
  if (Object.hasOwn(KERNEL_PROBLEMS, code)) return kernelProblem(code as KernelProblemCode, more);
  return kernelProblem('internal', { cause: new Error(`${manifest.id} threw the undeclared problem ${code}`) });
}

/** `<data>/files/{service}`, or a declared one. Names are of a-z, 0-9 and hyphens, so that none leads anywhere else (E002, E062). */
function ownFolder(dataDir: string, { id, folders }: Manifest, name?: string): string {
  if (name !== undefined && !folders.includes(name)) throw new Error(`${id} declares no folder ${name}`);
  const folder = name === undefined ? join(dataDir, 'files', id) : join(dataDir, name);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/**
 * The workload a typed client calls as: the further one whose needs name that service (`{service}-post`, NTF-056), the plugin's own when
 * `uses` does or nobody.
 */
function callerAt({ uses, workloads }: Manifest, service: string): string | undefined {
  return service in uses ? undefined : Object.keys(workloads).find(name => service in (workloads[name] ?? {}));
}
