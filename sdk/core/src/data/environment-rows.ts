import type { AnyContract } from '../contract/contract.ts';
import type { Sql } from './sql.ts';
import type { Tx } from './tx.ts';

/**
 * Transactions that say whose rows they are about. In tables under row security (`rowSecurity` in the contract) they see and write the rows
 * of their environment alone, whatever a statement's own condition says; other tables are as they always are.
 */
export interface EnvironmentRows<C extends AnyContract> {
  tx<T>(work: (tx: Tx<C>) => Promise<T>): Promise<T>;
  /** Statements that only read, in a transaction of their own. */
  read<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
}
