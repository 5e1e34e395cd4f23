import { isUnavailable } from '@platform/sdk';
import type postgres from 'postgres';
import { driver } from './postgres-driver.ts';
import { TYPES } from './postgres-types.ts';
import { guardedTransaction } from '../schema/guarded-transaction.ts';
import { EVERY_ENVIRONMENT } from '../schema/row-environment.ts';
import { RenewedDriver } from './renewed-driver.ts';
import { type Sql, toSql } from '../schema/sql.ts';

/** The client's side of a certificate login; getters are read at every connect, so a renewed certificate is used at once. */
export interface PoolTls {
  readonly ca: string | readonly string[];
  readonly cert: string;
  readonly key: string;
  readonly servername?: string;
}

export interface PostgresPoolOptions {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly schema: string;
  /** Missing only for a server without certificate logins. */
  readonly ssl?: PoolTls | (() => PoolTls) | 'verify-full';
  readonly password?: string;
  /** With one login for all services, the role this pool works as. Such a login keeps services apart only while their code is trusted. */
  readonly role?: string;
  readonly max?: number;
  readonly statementTimeoutMs?: number;
  readonly idleInTransactionTimeoutMs?: number;
  /** Commits do not wait for the disk: only for what may be done again when the last moments before a crash are lost. */
  readonly repeatable?: boolean;
  /** Connections stay open though nobody asks anything: for a session that holds a lock. */
  readonly lasting?: boolean;
  /** Every statement may see the rows of every environment, where a table is held to one. */
  readonly everyEnvironment?: boolean;
  readonly onNotice?: (message: string) => void;
}

/** How many transactions may wait for a connection before callers are told to come back. */
const MAX_WAITING = 1_000;

/** The connections of one service: its role, its schema, its limits. Life: open → closed. */
export class PostgresPool {
  /** The public tag, for statements outside a transaction. */
  readonly sql: Sql;
  /** The driver itself, for the kernel. */
  readonly raw: postgres.Sql;
  readonly #options: PostgresPoolOptions;
  readonly #driver: RenewedDriver;
  readonly #make: () => postgres.Sql;
  /** Subscriptions have a client of their own: it takes them up again by itself, and nothing else is written on it. */
  #listener: postgres.Sql | undefined;
  #transactions = 0;

  constructor(options: PostgresPoolOptions) {
    this.#options = options;
    const { host, port, database, user, password, schema, role, max = 6, onNotice } = options;
    const make = () =>
      driver({
        host,
        port,
        database,
        user,
        max,
        ...(password !== undefined && { password }),
        ssl: secured(options.ssl),
        connect_timeout: 2,
        idle_timeout: options.lasting ? 0 : 300,
        backoff: (tries: number) => Math.min(0.05 * 2 ** tries, 1),
        types: TYPES,
        onnotice: notice => onNotice?.(String(notice['message'])),
        connection: {
          application_name: `platform ${schema}`,
          // Services ask by key. A table that has grown since it was last counted must not be read whole for it.
          enable_seqscan: 'off',
          search_path: `"${schema}"`,
          TimeZone: 'UTC',
          DateStyle: 'ISO',
          statement_timeout: options.statementTimeoutMs ?? 15_000,
          idle_in_transaction_session_timeout: options.idleInTransactionTimeoutMs ?? 30_000,
          ...(options.repeatable && { synchronous_commit: 'off' }),
          ...(role !== undefined && { role }),
          ...(options.everyEnvironment && EVERY_ENVIRONMENT),
        },
      }) as unknown as postgres.Sql;
    this.#make = make;
    this.#driver = new RenewedDriver(make);
    this.raw = this.#driver.sql;
    this.sql = toSql(this.raw);
  }

  /**
   * Runs `work` in one transaction: its return commits, its throw rolls back. What it gives to `last` is not waited for before the commit,
   * which goes out right behind it: a statement that fails leaves the server nothing but to roll back, and the transaction fails with it.
   */
  async tx<T>(
    work: (sql: Sql, last: (statements: readonly PromiseLike<unknown>[]) => void, raw: postgres.TransactionSql) => Promise<T>,
  ): Promise<T> {
    if (this.#transactions >= MAX_WAITING)
      throw Object.assign(new Error('too many transactions wait for the database'), { code: 'POOL_BUSY' });
    this.#transactions += 1;
    try {
      let ending: Promise<unknown> | undefined;
      const answer = await guardedTransaction(this.raw, async raw => {
        const last = (statements: readonly PromiseLike<unknown>[]) => {
          ending = Promise.all(statements);
          // Heard below, also when the commit fails first.
          ending.catch(() => undefined);
        };
        const result = await work(toSql(raw), last, raw);
        // The driver sends a query some microtasks after it is asked for: behind this, all of them are before the commit.
        if (ending) await new Promise<void>(resolve => process.nextTick(resolve));
        return result;
      });
      await ending;
      return answer;
    } finally {
      this.#transactions -= 1;
    }
  }

  /**
   * Calls `heard` for every notification, and `listening` whenever the subscription is (again) in force. Ends with the answer's disposal.
   */
  async listen(channel: string, heard: (payload: string) => void, listening: () => void = () => {}): Promise<AsyncDisposable> {
    this.#listener ??= this.#make();
    const { unlisten } = await this.#listener.listen(channel, heard, listening);
    return {
      [Symbol.asyncDispose]: () =>
        unlisten().then(
          () => undefined,
          (error: unknown) => {
            if (!isUnavailable(error)) throw error;
          },
        ),
    };
  }

  /** Transactions that run, or wait for a connection. */
  get transactions(): number {
    return this.#transactions;
  }

  /** Whether the database answers now. */
  async healthy(timeoutMs = 1_000): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(resolve, timeoutMs, false);
    const asked = this.raw`select 1`.then(
      () => true,
      () => false,
    );
    try {
      return await Promise.race([asked, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** A second pool of the same identity with other limits; the caller closes it. */
  sibling(
    changes: Partial<
      Pick<PostgresPoolOptions, 'max' | 'statementTimeoutMs' | 'idleInTransactionTimeoutMs' | 'repeatable' | 'lasting' | 'everyEnvironment'>
    >,
  ): PostgresPool {
    return new PostgresPool({ ...this.#options, ...changes });
  }

  /** Lets running statements finish for a moment, then cuts the connections. */
  async close(graceMs = 5_000): Promise<void> {
    const options = { timeout: graceMs / 1_000 };
    await Promise.all([this.#driver.end(options), this.#listener?.end(options)]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function secured(ssl: PostgresPoolOptions['ssl']): false | 'verify-full' | object {
  if (ssl === undefined) return false;
  if (ssl === 'verify-full') return ssl;
  const now = typeof ssl === 'function' ? ssl : () => ssl;
  // The driver copies this object whenever it connects, which reads the getters anew.
  return {
    minVersion: 'TLSv1.3',
    rejectUnauthorized: true,
    get ca() {
      return now().ca;
    },
    get cert() {
      return now().cert;
    },
    get key() {
      return now().key;
    },
    get servername() {
      return now().servername ?? 'localhost';
    },
  };
}
