import type {
  AnyContract,
  AtEnd,
  AuditEntry,
  PlatformContext,
  EmitEntry,
  EnqueueOptions,
  KeySeeds,
  SealedBox,
  Sql,
  Tx,
} from '@platform/sdk';
import type { Clock } from '../../base/clock.ts';
import { newId } from '../../base/ids.ts';
import type { Manifest } from '../../base/manifest.ts';
import { Validator } from '../../http/schema/schema.ts';
import { markKeyed } from '../../http/answers/replayed-answers.ts';
import { AUDIT_EVENT } from '../../outbox/audit-event.ts';
import { AlreadyHandled, currentConsumption } from '../../outbox/consumption/consumption.ts';
import { once } from '../../outbox/consumption/inbox.ts';
import { EventBatch } from '../../outbox/event-batch.ts';
import { drop, release } from '../../outbox/outbox.ts';
import { nameEnvironment } from '../../storage/schema/row-security.ts';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import { currentScope } from '../../telemetry/request-scope.ts';
import { sealedTask } from '../../work/sealed-task.ts';
import { cancelTask, enqueueTask, type NewTask } from '../../work/task-store.ts';

type Db = PlatformContext<AnyContract>['db'];
interface Open {
  readonly sql: Sql;
  readonly ends: AtEnd[];
  readonly events: EventBatch;
}

/** The correlation id of the request, event or task that is under way; a new one where nothing is. */
export const correlationOf = (service: string): string => currentScope()?.correlationId ?? `${service}-${newId()}`;

/** Transactions of one service: what a change announces, queues and records is written with it, or not at all. */
export class Transactions {
  readonly #manifest: Manifest;
  readonly #pool: PostgresPool;
  readonly #clock: Clock;
  readonly #keys: Readonly<Record<string, SealedBox | KeySeeds>>;
  readonly #validators = new Map<object, Validator>();

  constructor({
    manifest,
    pool,
    clock,
    keys,
  }: { manifest: Manifest; pool: PostgresPool; clock: Clock; keys: Readonly<Record<string, SealedBox | KeySeeds>> }) {
    [this.#manifest, this.#pool, this.#clock, this.#keys] = [manifest, pool, clock, keys];
  }

  /** Inside a delivery its mark, and inside a request with a key that key, are written in the first transaction. */
  readonly tx: Db['tx'] = work => this.#run(work);

  readonly of: Db['of'] = envId => this.#rows(envId);
  readonly ofAll: Db['ofAll'] = () => this.#rows();

  /** With one statement more, which is not waited for, that says whose rows it is about. */
  #rows(envId?: string): ReturnType<Db['of']> {
    return {
      tx: work => this.#run(work, sql => nameEnvironment(sql, envId)),
      read: work =>
        this.#pool.tx(async (sql, _last, raw) => {
          void nameEnvironment(raw, envId);
          return work(sql);
        }),
    };
  }

  async #run<T>(work: (tx: Tx<AnyContract>) => Promise<T>, first?: (raw: Parameters<typeof nameEnvironment>[0]) => void): Promise<T> {
    const consumption = currentConsumption();
    const marks = consumption !== undefined && !consumption.marked;
    const scope = currentScope();
    const keyed = scope?.service === this.#manifest.id ? scope.keyed : undefined;
    const result = await this.#pool.tx(async (sql, last, raw) => {
      first?.(raw);
      if (marks && !(await once(sql, consumption.consumer, consumption.key))) throw new AlreadyHandled();
      await markKeyed(sql, keyed);
      const open: Open = { sql, ends: [], events: new EventBatch(sql) };
      const answer = await work(this.#tx(open));
      const writes: PromiseLike<unknown>[] = [];
      for (const end of open.ends) writes.push(...((await end()) ?? []));
      last([...writes, open.events.write()]);
      return answer;
    });
    if (marks) consumption.marked = true;
    if (keyed) keyed.marked = true;
    return result;
  }

  /** One statement that changes something and writes what it announces. */
  readonly one: Db['one'] = async (announce, write) => {
    const statement = async (sql: Sql) => {
      const events = new EventBatch(sql);
      await announce(this.#tx({ sql, ends: [], events }));
      const written = write(sql, where => events.definition(where));
      // The driver sends a statement when it is waited for: this one is not sent.
      if (events.pending) throw new Error(`${this.#manifest.id} announces events that its statement does not write`);
      return written;
    };
    // The mark of a delivery is a statement of its own.
    return currentConsumption()?.marked === false ? this.tx(({ sql }) => statement(sql)) : statement(this.#pool.sql);
  };

  #tx(open: Open): Tx<AnyContract> {
    const { sql, ends } = open;
    return {
      sql,
      emit: (event, envId, payload, hold) =>
        this.#emit(open, event as string, [{ envId, payload, ...(hold === undefined ? {} : { hold }) }]),
      emitAll: (event, entries) => this.#emit(open, event as string, entries),
      atEnd: work => void ends.push(work),
      enqueue: async (name, payload, options) => enqueueTask(sql, this.#task(name as string, payload, options)),
      cancel: async (name, key) => cancelTask(sql, name as string, key),
      release: async hold => void (await release(sql, hold)),
      drop: async hold => void (await drop(sql, hold)),
      audit: entry => this.#audit(open, entry),
    };
  }

  async #audit({ events }: Open, entry: AuditEntry): Promise<void> {
    const scope = currentScope();
    if (scope) scope.audited = true;
    await events.add([{ ...this.#announced(entry.envId), event_type: AUDIT_EVENT, stream_family: 'audit', payload: auditPayload(entry) }]);
  }

  async #emit({ events }: Open, event: string, entries: readonly (EmitEntry<unknown> & { readonly hold?: string })[]): Promise<void> {
    const def = this.#manifest.events[event];
    // An event that breaks its own schema must fail the transaction that would make it true.
    if (!def) throw new Error(`${this.#manifest.id} does not declare the event ${event}`);
    for (const { payload } of entries) this.#require(event, def.payload, payload);
    await events.add(
      entries.map(({ envId, payload, correlationId, subject, hold }) => ({
        ...this.#announced(envId, correlationId, subject),
        event_type: event,
        stream_family: def.family ?? this.#manifest.family,
        payload: payload as object,
        ...(hold === undefined ? {} : { hold }),
      })),
    );
  }

  #task(name: string, payload: unknown, { key, at, envId }: EnqueueOptions = {}): NewTask {
    const { id, tasks } = this.#manifest;
    const def = tasks[name];
    // Work that could never be done must fail the change that asks for it.
    if (!def) throw new Error(`${id} does not declare the task ${name}`);
    this.#require(name, def.payload, payload);
    const now = this.#clock.now();
    return {
      task_id: newId(),
      name,
      lane: def.lane === 'env' ? (envId ?? currentScope()?.envId ?? '') : '',
      key: key ?? null,
      payload: sealedTask(id, name, def, this.#keys)?.seal(payload) ?? payload,
      correlation_id: correlationOf(id),
      subject: this.#publisher,
      due_at: at ?? now,
      created_at: now,
    };
  }

  #require(name: string, schema: object, payload: unknown): void {
    let validator = this.#validators.get(schema);
    if (!validator) this.#validators.set(schema, (validator = new Validator(schema as never)));
    if (!validator.check(payload)) throw new Error(`the payload of ${name} does not fit: ${JSON.stringify(validator.faults(payload))}`);
  }

  #announced(envId: string, correlationId = correlationOf(this.#manifest.id), subject = this.#publisher) {
    return { id: newId(), env_id: envId, correlation_id: correlationId, publisher_subject: subject };
  }

  /** In whose name something is announced. */
  get #publisher(): string {
    return currentScope()?.subject ?? this.#manifest.id;
  }
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
