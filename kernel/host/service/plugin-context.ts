import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type AnyContract,
  type AnyPlugin,
  type AtEnd,
  type AuditEntry,
  type Caller,
  type Context,
  type EmitEntry,
  type EnqueueOptions,
  type KeySeeds,
  type KeyValue,
  type Logger,
  ProblemError,
  type ProcessHost,
  type Request,
  type SigningAuthority,
  type SealedBox,
  type Sql,
  type TokenChecks,
  type Tx,
} from '@platform/sdk';
import { TimedCache } from '../../base/cache.ts';
import type { Clock } from '../../base/clock.ts';
import type { DisposalStack } from '../../base/disposal-stack.ts';
import { newId } from '../../base/ids.ts';
import type { Manifest } from '../../base/manifest.ts';
import { kernelProblem } from '../../base/kernel-problem.ts';
import { page } from '../../http/paging.ts';
import { markKeyed } from '../../http/replayed-answers.ts';
import { foreignCheck } from '../../http/foreign-schema.ts';
import { Validator } from '../../http/schema.ts';
import { actionKey } from '../../identity/tokens/scope-name.ts';
import type { Identity } from '../../identity/tokens/verifier.ts';
import type { Workload } from '../../identity/workload.ts';
import { AUDIT_EVENT } from '../../outbox/audit-event.ts';
import { AlreadyHandled, currentConsumption } from '../../outbox/consumption/consumption.ts';
import { once } from '../../outbox/consumption/inbox.ts';
import type { ConsumerBus } from '../../outbox/consumption/event-consumer.ts';
import { EventBatch } from '../../outbox/event-batch.ts';
import { drop, release } from '../../outbox/outbox.ts';
import { cronTimes } from '../../work/cron-times.ts';
import { reseal } from '../../work/reseal.ts';
import { sealedTask } from '../../work/sealed-task.ts';
import type { TaskRunner } from '../../work/task-runner.ts';
import { cancelTask, enqueueTask, type NewTask } from '../../work/task-store.ts';
import type { PolicyEngine } from '../../policy/policy-engine.ts';
import { inquire } from '../../policy/policy-inquiry.ts';
import type { PolicyPort } from '../../policy/policy-port.ts';
import type { BackendPools } from '../../routing/backend-pools.ts';
import type { ServiceCaller } from '../../routing/service-caller.ts';
import type { SecretChain } from '../../secrets/secret-chain.ts';
import { secretsPort } from '../../secrets/secrets-port.ts';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import { locksOf } from '../../storage/lock.ts';
import { RateLimit } from '../../storage/rate-limit.ts';
import type { DeclaredMetrics } from '../../telemetry/declared-metrics.ts';
import { currentScope } from '../../telemetry/request-scope.ts';
import { catalogActions } from '../catalog-actions.ts';
import { runtimeConsumer } from './service-consumers.ts';

export interface PluginContextParts {
  readonly plugin: AnyPlugin;
  readonly manifest: Manifest;
  readonly config: Readonly<Record<string, unknown>>;
  readonly log: Logger;
  readonly pool: PostgresPool;
  readonly clock: Clock;
  readonly caller: ServiceCaller;
  readonly pools: BackendPools;
  readonly workloadOf: (name: string | undefined) => Workload;
  readonly secrets: SecretChain;
  readonly keys: Readonly<Record<string, SealedBox | KeySeeds>>;
  readonly engine: PolicyEngine;
  readonly policy: PolicyPort;
  readonly identityOf: (caller: Caller) => Promise<Identity>;
  readonly verify: (request: Pick<Request, 'headers' | 'peer'>) => Promise<Identity | undefined>;
  readonly tokens: TokenChecks;
  readonly manifests: () => readonly Manifest[];
  readonly platform: Context<AnyContract>['platform'];
  readonly kv: KeyValue;
  readonly authority: SigningAuthority | undefined;
  readonly processes: ProcessHost | undefined;
  /** Sockets that were handed to this process, by the listener door they are for. */
  readonly listeners: Readonly<Record<string, number>>;
  readonly owned: DisposalStack;
  readonly metrics: DeclaredMetrics['instruments'];
  /** There once the plugin is set up. */
  readonly tasks: () => TaskRunner | undefined;
  readonly bus: ConsumerBus;
  readonly instance: string;
}

/** Builds what a plugin may touch, and nothing else: capabilities it did not declare are not there. */
export function pluginContext(parts: PluginContextParts): Context<AnyContract> {
  const { manifest, plugin, pool } = parts;
  const validators = new Map<string, Validator>();
  const payloadValidator = (name: string) => {
    let validator = validators.get(name);
    const event = manifest.events[name];
    if (!validator && event) validators.set(name, (validator = new Validator(event.payload)));
    return validator;
  };
  let listed: { readonly manifests: readonly Manifest[]; readonly actions: ReturnType<typeof catalogActions> } | undefined;
  const publisher = () => currentScope()?.subject ?? manifest.id;
  const correlation = () => currentScope()?.correlationId ?? `${manifest.id}-${newId()}`;

  const taskValidators = new Map<string, Validator>();
  const queued = (name: string, payload: unknown, { key, at, envId }: EnqueueOptions = {}): NewTask => {
    const def = manifest.tasks[name];
    // Work that could never be done must fail the change that asks for it.
    if (!def) throw new Error(`${manifest.id} does not declare the task ${name}`);
    let validator = taskValidators.get(name);
    if (!validator) taskValidators.set(name, (validator = new Validator(def.payload)));
    if (!validator.check(payload)) throw new Error(`the payload of ${name} does not fit: ${JSON.stringify(validator.faults(payload))}`);
    const now = parts.clock.now();
    const lane = def.lane === 'env' ? (envId ?? currentScope()?.envId ?? '') : '';
    const carried = sealedTask(manifest.id, name, def, parts.keys)?.seal(payload) ?? payload;
    return {
      task_id: newId(),
      name,
      lane,
      key: key ?? null,
      payload: carried,
      correlation_id: correlation(),
      subject: publisher(),
      due_at: at ?? now,
      created_at: now,
    };
  };

  const transaction = (sql: Sql, { ends, events }: { ends: AtEnd[]; events: EventBatch }): Tx<AnyContract> => {
    const emitAll = async (event: string, entries: readonly (EmitEntry<unknown> & { readonly hold?: string })[]) => {
      const validator = payloadValidator(event);
      // An event that breaks its own schema must fail the transaction that would make it true.
      if (!validator) throw new Error(`${manifest.id} does not declare the event ${event}`);
      for (const { payload } of entries)
        if (!validator.check(payload))
          throw new Error(`the payload of ${event} does not fit: ${JSON.stringify(validator.faults(payload))}`);
      await events.add(
        entries.map(({ envId, payload, correlationId, subject, hold }) => ({
          id: newId(),
          env_id: envId,
          event_type: event,
          stream_family: manifest.events[event]?.family ?? manifest.family,
          payload: payload as object,
          correlation_id: correlationId ?? correlation(),
          publisher_subject: subject ?? publisher(),
          ...(hold === undefined ? {} : { hold }),
        })),
      );
    };
    return {
      sql,
      emit: (event, envId, payload, hold) => emitAll(event as string, [{ envId, payload, ...(hold === undefined ? {} : { hold }) }]),
      emitAll: (event, entries) => emitAll(event as string, entries),
      atEnd: work => void ends.push(work),
      enqueue: async (name, payload, options) => enqueueTask(sql, queued(name as string, payload, options)),
      cancel: async (name, key) => cancelTask(sql, name as string, key),
      release: async hold => void (await release(sql, hold)),
      drop: async hold => void (await drop(sql, hold)),
      audit: async entry =>
        events.add([
          {
            id: newId(),
            env_id: entry.envId,
            event_type: AUDIT_EVENT,
            stream_family: 'audit',
            payload: auditPayload(entry),
            correlation_id: correlation(),
            publisher_subject: publisher(),
          },
        ]),
    };
  };

  const context: Context<AnyContract> = {
    config: parts.config as never,
    log: parts.log,
    db: {
      sql: pool.sql,
      tx: async work => {
        const consumption = currentConsumption();
        const marks = consumption !== undefined && !consumption.marked;
        const scope = currentScope();
        const keyed = scope?.service === manifest.id ? scope.keyed : undefined;
        const result = await pool.tx(async (sql, last) => {
          if (marks && !(await once(sql, consumption.consumer, consumption.key))) throw new AlreadyHandled();
          await markKeyed(sql, keyed);
          const ends: AtEnd[] = [];
          const events = new EventBatch(sql);
          const answer = await work(transaction(sql, { ends, events }));
          const writes: PromiseLike<unknown>[] = [];
          for (const end of ends) writes.push(...((await end()) ?? []));
          last([...writes, events.write()]);
          return answer;
        });
        if (marks) consumption.marked = true;
        if (keyed) keyed.marked = true;
        return result;
      },
      one: async (announce, write) => {
        const statement = async (sql: Sql) => {
          const events = new EventBatch(sql);
          await announce(transaction(sql, { ends: [], events }));
          const written = write(sql, where => events.definition(where));
          // The driver sends a statement when it is waited for: this one is not sent.
          if (events.pending) throw new Error(`${manifest.id} announces events that its statement does not write`);
          return written;
        };
        // The mark of a delivery is a statement of its own.
        return currentConsumption()?.marked === false ? context.db.tx(({ sql }) => statement(sql)) : statement(pool.sql);
      },
      listen: (channel, listener) => pool.listen(channel, listener),
    },
    clock: parts.clock,
    every: (ms, work) => parts.clock.every(ms, work),
    cron: cronTimes,
    services: Object.fromEntries(
      Object.entries(plugin.uses as Record<string, AnyContract>).map(([name, contract]) => [
        name,
        parts.caller.client(
          parts.workloadOf(callerAt(manifest, contract.base.id as string)),
          contract.base.id,
          contract.routes,
          contract.problems,
        ),
      ]),
    ) as never,
    events: { subscribe: (wanted, handler) => runtimeConsumer(parts, wanted, handler) },
    tasks: {
      left: async name => ((await parts.tasks()?.left(name)) ?? []) as never,
      attempt: async (name, key) => (await parts.tasks()?.attempt(name, key)) ?? 'absent',
    },
    metrics: parts.metrics as never,
    keys: parts.keys as never,
    reseal: async (name, places, signal) => {
      const box = parts.keys[name];
      if (!box || !('seal' in box)) throw new Error(`${manifest.id} declares no key ${name} that seals`);
      await reseal({ service: manifest.id, tasks: manifest.tasks, pool, log: parts.log }, { name, box }, places, signal);
    },
    secrets: secretsPort(parts.secrets),
    policy: {
      attributes: (principal, envId) => parts.engine.attributes(principal, envId),
      allows: async (caller, action, resource) =>
        parts.engine.allows({
          identity: await parts.identityOf(caller),
          action: actionKey(manifest.vertical, action),
          envId: caller.envId,
          resource,
          correlationId: correlation(),
        }),
      explain: inquiry =>
        inquire(inquiry, {
          load: capability(manifest, 'policy-store', parts.policy).snapshot,
          log: parts.log,
          correlationId: correlation(),
        }),
    },
    catalog: {
      manifests: parts.manifests,
      actions: () => {
        const manifests = parts.manifests();
        if (listed?.manifests !== manifests) listed = { manifests, actions: manifests.flatMap(catalogActions) };
        return listed.actions;
      },
      checkOf: (schema, { base = '', foreign = false } = {}) => {
        if (foreign) return foreignCheck(schema, base);
        const validator = new Validator(schema);
        return value => (validator.check(value) ? [] : validator.faults(value, base));
      },
    },
    platform: parts.platform,
    cache: options => new TimedCache(options, () => parts.clock.now().getTime()),
    limit: options => new RateLimit(parts.kv, manifest.id, parts.log, options),
    lock: locksOf(parts.kv, manifest.id, parts.log),
    files: { directory: () => ownFolder(parts.platform.dataDir, manifest.id) },
    kv: capability(manifest, 'key-value', parts.kv),
    backends: capability(manifest, 'backends', parts.pools.facade(parts.workloadOf)),
    authority: capability(manifest, 'authority', parts.authority ?? ({} as SigningAuthority)),
    listen: async (door, server, { port, address }) => {
      if (!Object.values(manifest.routes).some(route => route.door === 'listener' && route.path === door))
        throw new Error(`${manifest.id} declares no listener ${door}`);
      const fd = parts.listeners[door];
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(fd === undefined ? { port, host: address } : { fd }, () => resolve());
      });
      return fd !== undefined;
    },
    processes: capability(manifest, 'processes', parts.processes ?? ({} as ProcessHost)),
    auth: {
      verify: async request => {
        const identity = await parts.verify(request);
        if (!identity) return undefined;
        const { caller } = identity;
        return {
          caller,
          permits: action =>
            parts.engine.allows({
              identity,
              action: actionKey(manifest.vertical, action),
              envId: caller.envId,
              correlationId: correlation(),
            }),
        };
      },
    },
    tokens: parts.tokens,
    page: (query, spec, read) => page(pool.sql, query, spec, read),
    requireVersion: (ifMatch, version) => {
      if (ifMatch && !ifMatch.includes(version))
        throw kernelProblem('precondition_failed', { detail: 'Read it again and repeat the change.', headers: { etag: `"${version}"` } });
    },
    problem: (code, more) => {
      const decl = manifest.problems[code as string];
      if (!decl)
        return new ProblemError(
          'kernel',
          'internal',
          { status: 500, title: 'Something went wrong on our side', retry: 'later', log: 'error' },
          { cause: new Error(`${manifest.id} threw the undeclared problem ${String(code)}`) },
        );
      return new ProblemError(manifest.id, code as string, decl, more);
    },
    own: resource => parts.owned.own(resource),
  };
  return Object.freeze(context);
}

/** `<data>/files/{service}`. Service ids are of a-z and 0-9, so that none leads anywhere else (check E002). */
function ownFolder(dataDir: string, service: string): string {
  const folder = join(dataDir, 'files', service);
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

function auditPayload({ action, caller, resource, outcome, details }: AuditEntry): object {
  return {
    action,
    ...(caller
      ? {
          actor:
            caller.kind === 'machine'
              ? { kind: 'workload', id: caller.subject }
              : { kind: 'user', id: caller.userId, ...(caller.kind === 'delegated' ? { act: caller.subject } : {}) },
        }
      : {}),
    ...(resource ? { resource } : {}),
    outcome: outcome ?? 'success',
    ...(details ? { details } : {}),
    occurred_at: new Date().toISOString(),
  };
}

function capability<T extends object>(manifest: Manifest, name: string, value: T): T {
  if (manifest.capabilities.includes(name)) return value;
  return new Proxy(value, {
    get: () => {
      throw new Error(`${manifest.id} uses the capability '${name}' without declaring it`);
    },
  });
}
