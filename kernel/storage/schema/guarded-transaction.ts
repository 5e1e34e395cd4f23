import { setTimeout } from 'node:timers/promises';
import type postgres from 'postgres';
import { BROKEN } from '../postgres/renewed-driver.ts';

/** A connection that said it is broken is closed within this; one that is not is rolled back. */
const CLOSING_MS = 1_000;

/** A query of the driver: it is sent by `handler`, some microtasks after it was asked for, and fails by `reject`. */
interface Sendable {
  handler: (query: unknown) => void;
  reject(error: unknown): void;
}

/**
 * The driver's transaction, which writes no more once its connection is gone. `postgres` 3.4.9 sends the statements that follow, its own
 * rollback among them, on a socket it no longer has: an error that nobody can catch, and the end of the process.
 */
export async function guardedTransaction<T>(client: postgres.Sql, work: (sql: postgres.TransactionSql) => Promise<T>): Promise<T> {
  let gone: unknown;
  let over = false;
  const ended = Promise.withResolvers<void>();
  const begun = client.begin(async sql => {
    const guarded = guard(
      sql,
      () => gone,
      error => {
        gone ??= error;
      },
    );
    let outcome: { result: T } | { error: unknown };
    try {
      outcome = { result: await work(guarded) };
    } catch (error) {
      outcome = { error };
    }
    // The driver gives the transaction up by itself when the connection is closed; what this answered then would be written behind it.
    if (gone !== undefined) await Promise.race([ended.promise, setTimeout(CLOSING_MS, undefined, { ref: false })]);
    if (over) await new Promise(() => {});
    if ('error' in outcome) throw outcome.error;
    return outcome.result;
  }) as Promise<T>;
  begun.catch((error: unknown) => {
    gone ??= error;
    over = true;
    ended.resolve();
  });
  return begun;
}

/** The same transaction, whose queries ask first whether there is a connection, and say when there is none any more. */
function guard(sql: postgres.TransactionSql, gone: () => unknown, lost: (error: unknown) => void): postgres.TransactionSql {
  const watched = (made: unknown): unknown => {
    if (!(made instanceof Promise) || !('handler' in made)) return made;
    const query = made as unknown as Sendable;
    const { handler, reject } = query;
    // Both functions are made here and assigned below. V8 makes a function that is written as a member in the old generation at once, where
    // it keeps all that it refers to until the next full collection.
    const send = (asked: unknown): void => (gone() === undefined ? handler(asked) : query.reject(gone()));
    const fail = (error: unknown): void => {
      if (BROKEN.test(String((error as { code?: unknown } | undefined)?.code))) lost(error);
      reject(error);
    };
    query.handler = send;
    query.reject = fail;
    return made;
  };
  return new Proxy(sql, {
    apply: (target, _self, input: unknown[]) => watched((target as unknown as (...input: unknown[]) => unknown)(...input)),
    get: (target, name) => {
      const value = (target as unknown as Record<string | symbol, unknown>)[name];
      return typeof value === 'function'
        ? (...input: unknown[]) => watched((value as (...input: unknown[]) => unknown).apply(target, input))
        : value;
    },
  });
}
