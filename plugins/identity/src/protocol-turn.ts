import { AsyncLocalStorage } from 'node:async_hooks';
import type { Sealed, Sql } from '@platform/sdk';
import type { AdapterPayload } from 'oidc-provider';

/** One row of the protocol's state as it is kept; the id is hashed, in hex. */
export interface StateRow {
  readonly model: string;
  readonly id_hash: string;
  readonly id_sealed: Sealed | null;
  readonly payload: Omit<AdapterPayload, 'jti'>;
  readonly grant_id: string | null;
  readonly account_id: string | null;
  readonly uid: string | null;
  readonly user_code: string | null;
  readonly expires_at: string | null;
}
export interface StateName {
  readonly model: string;
  readonly id_hash: string;
}
export interface Read {
  readonly payload: Omit<AdapterPayload, 'jti'>;
  readonly consumed_at: string | null;
}

const running = new AsyncLocalStorage<ProtocolTurn>();
const nameOf = ({ model, id_hash }: StateName): string => `${model} ${id_hash}`;

/**
 * What one request does to the protocol's state: written in one statement before it is answered, all of it or nothing. What decides between
 * two requests (single use) never waits for that. Life: begun → written.
 */
export class ProtocolTurn {
  readonly #envId: string;
  readonly #sql: Sql;
  readonly #saved = new Map<string, StateRow>();
  readonly #gone = new Map<string, StateName>();
  readonly #beside = new Map<string, Read>();
  /** Rows that were there when this turn looked. */
  readonly #seen = new Set<string>();
  #written = false;

  constructor(sql: Sql, envId: string) {
    this.#sql = sql;
    this.#envId = envId;
  }

  /** The turn of the request that is being served in this environment; nothing once it was written. */
  static current(envId: string): ProtocolTurn | undefined {
    const turn = running.getStore();
    return turn && !turn.#written && turn.#envId === envId ? turn : undefined;
  }

  run<T>(work: () => T): T {
    return running.run(this, work);
  }

  save(row: StateRow): void {
    const name = nameOf(row);
    this.#gone.delete(name);
    this.#saved.set(name, row);
  }

  forget(name: StateName): void {
    this.#saved.delete(nameOf(name));
    this.#gone.set(nameOf(name), { model: name.model, id_hash: name.id_hash });
  }

  forgetGrant(grantId: string): void {
    for (const [name, row] of this.#saved) if (row.grant_id === grantId) this.#saved.delete(name);
  }

  /** What was read and is saved later is changed then, not made: somebody may have ended it meanwhile, and it must stay ended. */
  see(name: StateName): void {
    this.#seen.add(nameOf(name));
  }

  /** What this turn has done to a row: saved it, or `null` for ended it. */
  changed(name: StateName): Read | null | undefined {
    if (this.#gone.has(nameOf(name))) return null;
    const saved = this.#saved.get(nameOf(name));
    return saved && { payload: saved.payload, consumed_at: null };
  }

  /** Remembers a row that was read along with another, for the one who asks for it next. */
  bring(name: StateName, row: Read): void {
    this.#beside.set(nameOf(name), row);
  }

  brought(name: StateName): Read | undefined {
    const row = this.#beside.get(nameOf(name));
    this.#beside.delete(nameOf(name));
    return row;
  }

  /** Writes what was gathered so far, for whoever looks for it by something else than its name. */
  async settle(sql = this.#sql): Promise<void> {
    if (this.#saved.size === 0 && this.#gone.size === 0) return;
    const [saved, gone] = [[...this.#saved.values()], [...this.#gone.values()]];
    this.#saved.clear();
    this.#gone.clear();
    const [changed, made] = [saved.filter(row => this.#seen.has(nameOf(row))), saved.filter(row => !this.#seen.has(nameOf(row)))];
    for (const row of made) this.see(row);
    await writeState(sql, this.#envId, { made, changed, gone });
  }

  /** Writes what is left, in the caller's transaction where it has one. */
  async write(sql = this.#sql): Promise<void> {
    this.#written = true;
    await this.settle(sql);
  }
}

/** Rows that are made or made anew, rows that are changed if they are still there, and rows that end, in one statement. */
export async function writeState(
  sql: Sql,
  envId: string,
  { made = [], changed = [], gone = [] }: { made?: readonly StateRow[]; changed?: readonly StateRow[]; gone?: readonly StateName[] },
): Promise<void> {
  await sql`
    with gone as (
      delete from oidc_state s using jsonb_to_recordset(${sql.json(gone)}) as g(model text, id_hash text)
      where s.env_id = ${envId} and s.model = g.model and s.id_hash = decode(g.id_hash, 'hex')),
    changed as (
      update oidc_state s set payload = c.payload, grant_id = c.grant_id, account_id = c.account_id, uid = c.uid, user_code = c.user_code, expires_at = c.expires_at
      from jsonb_to_recordset(${sql.json(changed)}) as c(
        model text, id_hash text, payload jsonb, grant_id text, account_id text, uid text, user_code text, expires_at timestamptz)
      where s.env_id = ${envId} and s.model = c.model and s.id_hash = decode(c.id_hash, 'hex'))
    insert into oidc_state (env_id, model, id_hash, id_sealed, payload, grant_id, account_id, uid, user_code, expires_at)
    select ${envId}::uuid, model, decode(id_hash, 'hex'), id_sealed, payload, grant_id, account_id, uid, user_code, expires_at
    from jsonb_to_recordset(${sql.json(made)}) as row(
      model text, id_hash text, id_sealed jsonb, payload jsonb, grant_id text, account_id text, uid text, user_code text, expires_at timestamptz)
    on conflict (env_id, model, id_hash) do update set payload = excluded.payload, grant_id = excluded.grant_id, account_id = excluded.account_id,
      uid = excluded.uid, user_code = excluded.user_code, expires_at = excluded.expires_at`;
}
