import type { Static } from 'typebox';
import type { AtEnd } from './at-end.ts';
import type { Caller } from '../request/caller.ts';
import type { AnyContract } from '../contract/contract.ts';
import type { EventDef } from '../contract/event.ts';
import type { Sql } from './sql.ts';
import type { EnqueueOptions, TaskPayload, TasksOf } from '../context/work/task-queue.ts';

export type PayloadOf<C extends AnyContract, N extends keyof C['events']> = C['events'][N] extends EventDef<infer S> ? Static<S> : never;

/** The only place an event can be emitted: inside the transaction that makes it true. */
export interface Tx<C extends AnyContract> {
  readonly sql: Sql;
  /** With `hold` the row commits, but the relay does not see it until `release`; `drop` forgets it (C9). */
  emit<N extends keyof C['events'] & string>(event: N, envId: string, payload: PayloadOf<C, N>, hold?: string): Promise<void>;
  /** Many events of one name in one statement; each under the correlation id and subject it names, or the caller's. */
  emitAll<N extends keyof C['events'] & string>(event: N, entries: readonly EmitEntry<PayloadOf<C, N>>[]): Promise<void>;
  /** Queues a declared task: it is done after this transaction has committed, and never when it has not. */
  enqueue<N extends keyof TasksOf<C> & string>(name: N, payload: TaskPayload<C, N>, options?: EnqueueOptions): Promise<void>;
  /** Takes back a task that still waits under this key. @returns whether there was one */
  cancel<N extends keyof TasksOf<C> & string>(name: N, key: string): Promise<boolean>;
  release(hold: string): Promise<void>;
  drop(hold: string): Promise<void>;
  /**
   * Runs after the transaction's own work and before it commits: for a lock that everybody takes, so that it is taken last and held
   * briefly.
   */
  atEnd(work: AtEnd): void;
  /** Queues one audit event for the registry's canonical trail. */
  audit(entry: AuditEntry): Promise<void>;
}

export interface EmitEntry<P> {
  readonly envId: string;
  readonly payload: P;
  readonly correlationId?: string;
  readonly subject?: string;
}

export interface AuditEntry {
  readonly action: string;
  readonly envId: string;
  readonly caller?: Caller | undefined;
  readonly resource?: { readonly type: string; readonly id: string };
  readonly outcome?: 'success' | 'denied' | 'error';
  readonly details?: Readonly<Record<string, unknown>>;
}
