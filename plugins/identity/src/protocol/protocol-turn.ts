import { AsyncLocalStorage } from 'node:async_hooks';
import { hash } from 'node:crypto';
import type { Sealed, Sql } from '@platform/sdk';
import type { AdapterPayload } from 'oidc-provider';
import type { Account } from '../people/person.ts';

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

/** What is used up with everything that is written, or none of it is written. */
interface Use {
  readonly name: StateName;
  /** Called for the one who comes too late; says how it is told so. */
  readonly refused: () => Error | Promise<Error>;
}
interface Changes {
  readonly made: readonly StateRow[];
  readonly changed: readonly StateRow[];
  readonly gone: readonly StateName[];
}

const running = new AsyncLocalStorage<ProtocolTurn>();
/** Ids are kept as their hash: nobody redeems anything with what the database holds. */
export const digestOf = (id: string): string => hash('sha256', id);
export const bytesOf = ({ id_hash }: Pick<StateName, 'id_hash'>): Buffer => Buffer.from(id_hash, 'hex');
export const stateName = (model: string, id: string): StateName => ({ model, id_hash: digestOf(id) });
const nameOf = ({ model, id_hash }: StateName): string => `${model} ${id_hash}`;

/**
 * What one request does to the protocol's state: written in one statement before it is answered, all of it or nothing. What decides between
 * two requests (single use) is in that statement or before it. Life: begun → written.
 */
export class ProtocolTurn {
  readonly #envId: string;
  readonly #sql: Sql;
  readonly #saved = new Map<string, StateRow>();
  readonly #gone = new Map<string, StateName>();
  readonly #beside = new Map<string, Read>();
  /** Rows that were there when this turn looked. */
  readonly #seen = new Set<string>();
  #use: Use | undefined;
  #person: Account | undefined;
  #written = false;
  #left: Changes | undefined;
  #admit: ((clientId: string) => Promise<void>) | undefined;

  /** `admit` is asked for the client that the request names, once, and throws where it may not go on. */
  constructor(sql: Sql, envId: string, admit?: (clientId: string) => Promise<void>) {
    this.#sql = sql;
    this.#envId = envId;
    this.#admit = admit;
  }

  /** The turn of the request that is being served in this environment; nothing once it was written. */
  static current(envId: string): ProtocolTurn | undefined {
    const turn = running.getStore();
    return turn && !turn.#written && turn.#envId === envId ? turn : undefined;
  }

  run<T>(work: () => T): T {
    return running.run(this, work);
  }

  async admit(clientId: string): Promise<void> {
    const admit = this.#admit;
    this.#admit = undefined;
    await admit?.(clientId);
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

  /** Whether the row was there when this turn looked, so that saving it changes it. */
  has(name: StateName): boolean {
    return this.#seen.has(nameOf(name));
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

  /** Remembers the person of a row, as read along with it. */
  bringPerson(person: Account): void {
    this.#person = person;
  }

  person(userId: string): Account | undefined {
    return this.#person?.user_id === userId ? this.#person : undefined;
  }

  /**
   * Uses a row up with what is written: of any number of requests that use it at once, one is written, and the others fail as `refused`
   * (H-13).
   */
  async use(name: StateName, refused: Use['refused']): Promise<void> {
    if (this.#use) await this.settle();
    this.#use = { name, refused };
  }

  /** Writes what was gathered so far, for a search by something else than its name. */
  async settle(): Promise<void> {
    const use = this.#use;
    if (this.#saved.size === 0 && this.#gone.size === 0 && !use) return;
    // What is used up stays for those who come with it again.
    if (use) this.#gone.delete(nameOf(use.name));
    this.#use = undefined;
    if (!(await writeState(this.#sql, this.#envId, { ...this.#take(), used: use?.name }))) throw await use?.refused();
  }

  /** Writes what is left. */
  async write(): Promise<void> {
    this.#written = true;
    await this.settle();
  }

  /**
   * What is left as definitions of a `with`, for a statement that decides by `where` whether it is written; the same for the next one,
   * where that wrote nothing.
   */
  definitions(sql: Sql, where: unknown): unknown {
    this.#written = true;
    this.#left ??= this.#take();
    return definitions(sql, this.#envId, this.#left, where);
  }

  #take(): Changes {
    const saved = [...this.#saved.values()];
    const gone = [...this.#gone.values()];
    this.#saved.clear();
    this.#gone.clear();
    const made = saved.filter(row => !this.has(row));
    const changed = saved.filter(row => this.has(row));
    for (const row of made) this.see(row);
    return { made, changed, gone };
  }
}

/**
 * Rows that are made or made anew, rows that are changed if they are still there, and rows that end, in one statement; with `used`, only if
 * nobody has used that row before.
 *
 * @returns whether it was written.
 */
export async function writeState(
  sql: Sql,
  envId: string,
  { made = [], changed = [], gone = [], used }: Partial<Changes> & { used?: StateName | undefined },
): Promise<boolean> {
  if (changed.length === 0 && gone.length === 0 && !used) {
    await sql`${madeRows(sql, envId, made)}`;
    return true;
  }
  const [row] = await sql<{ written: boolean }[]>`
    with used as (
      update oidc_state set consumed_at = now()
      where env_id = ${envId} and model = ${used?.model ?? null} and id_hash = ${used ? bytesOf(used) : null} and consumed_at is null
        returning 1),
    turn as (select ${used === undefined} or exists (select 1 from used) as written),
    ${definitions(sql, envId, { made, changed, gone }, sql`(select written from turn)`)}
    select written from turn`;
  return row?.written === true;
}

const definitions = (sql: Sql, envId: string, { made, changed, gone }: Changes, where: unknown): unknown => sql`
  gone as (
    delete from oidc_state s using jsonb_to_recordset(${sql.json(gone)}) as g(model text, id_hash text)
    where ${where} and ${named(sql, envId, gone)} and s.model = g.model and s.id_hash = decode(g.id_hash, 'hex')),
  changed as (
    update oidc_state s set payload = c.payload, grant_id = c.grant_id, account_id = c.account_id, uid = c.uid, user_code = c.user_code,
      expires_at = c.expires_at
    from jsonb_to_recordset(${sql.json(changed)}) as c(
      model text, id_hash text, payload jsonb, grant_id text, account_id text, uid text, user_code text, expires_at timestamptz)
    where ${where} and ${named(sql, envId, changed)} and s.model = c.model and s.id_hash = decode(c.id_hash, 'hex')),
  made as (${madeRows(sql, envId, made, sql`where ${where}`)})`;

/** By the set alone, whose size it does not know, the planner would rather read all that an environment has. */
const named = (sql: Sql, envId: string, rows: readonly StateName[]): unknown => sql`
  s.env_id = ${envId} and s.model = any(${rows.map(({ model }) => model)}::text[])
  and s.id_hash = any(array(select decode(id, 'hex') from unnest(${rows.map(({ id_hash }) => id_hash)}::text[]) id))`;

const madeRows = (sql: Sql, envId: string, made: readonly StateRow[], where: unknown = sql``): unknown => sql`
  insert into oidc_state (env_id, model, id_hash, id_sealed, payload, grant_id, account_id, uid, user_code, expires_at)
  select ${envId}::uuid, model, decode(id_hash, 'hex'), id_sealed, payload, grant_id, account_id, uid, user_code, expires_at
  from jsonb_to_recordset(${sql.json(made)}) as row(
    model text, id_hash text, id_sealed jsonb, payload jsonb, grant_id text, account_id text, uid text, user_code text,
      expires_at timestamptz)
  ${where}
  on conflict (env_id, model, id_hash) do update set payload = excluded.payload, grant_id = excluded.grant_id,
    account_id = excluded.account_id,
    uid = excluded.uid, user_code = excluded.user_code, expires_at = excluded.expires_at`;
