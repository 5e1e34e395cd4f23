import type { Static, TSchema } from 'typebox';
import type { AnyContract } from '../../contract/contract.ts';
import type { TaskDef } from '../../contract/task.ts';
import type { Sql } from '../../data/sql.ts';

export type TasksOf<C extends AnyContract> = C['base'] extends { tasks: infer T extends Readonly<Record<string, TaskDef>> }
  ? T
  : Readonly<Record<never, never>>;
export type TaskPayload<C extends AnyContract, N extends keyof TasksOf<C>> = TasksOf<C>[N] extends { payload: infer S extends TSchema }
  ? Static<S>
  : never;

export interface EnqueueOptions {
  /** While a task of this name and key waits, another one takes its place instead of standing beside it. */
  readonly key?: string;
  /** Not before this time; at once when absent. */
  readonly at?: Date;
  /** Whose lane, where the task has lanes; that of the request's environment when absent. */
  readonly envId?: string;
}

/** A task that has not ended well: it waits, runs or is dead. */
export interface LeftTask<P = unknown> {
  readonly taskId: string;
  readonly key: string | undefined;
  readonly payload: P;
  readonly state: 'waiting' | 'running' | 'dead';
  readonly attempts: number;
  readonly dueAt: string;
  readonly createdAt: string;
  /** Of its last try, in the words of the page *Work*. */
  readonly failure: string | undefined;
}

/** The service's own tasks, beside what a transaction queues. */
export interface TaskQueue<C extends AnyContract> {
  /** What is left of a name, or of one key of it; oldest first, at most 1,000. */
  left<N extends keyof TasksOf<C> & string>(name: N, key?: string): Promise<readonly LeftTask<TaskPayload<C, N>>[]>;
  /**
   * Tries the task that waits under a key here and now, whatever its time, so that whoever asked sees the effect. `absent` when none waits,
   * which may be because another process has it, or because this one ends.
   */
  attempt<N extends keyof TasksOf<C> & string>(name: N, key: string): Promise<'done' | 'failed' | 'absent'>;
}

/** One try of a task. */
export interface TaskRun {
  readonly taskId: string;
  /** From 1. */
  readonly attempt: number;
  readonly envId: string | undefined;
  readonly correlationId: string;
  /** Ends when the try has lasted too long, the service stops, or another process has taken the task over. */
  readonly signal: AbortSignal;
  /**
   * Ends the task inside the transaction of its effect, so that it happens exactly once. Without it a task ends after its handler has
   * returned.
   */
  finish(tx: { readonly sql: Sql }): Promise<void>;
}
