import type { EventBusContext } from '../context.ts';
import { InboxGroup, type InboxRow, keyOf } from './inbox-group.ts';
import type { JournalEntry } from './journal.ts';
import { NO_KEY, placeOf } from '../produce/minted-key.ts';
import type { StreamRef } from '../stream/names.ts';

/** Where a key was taken before. */
export interface Known extends StreamRef {
  readonly group: string;
  readonly position: number;
  readonly message_id: string | null;
}
type Sql = EventBusContext['db']['sql'];
interface Stored {
  readonly id: string;
  readonly attempt: number;
  readonly events: string;
  readonly positions: number[];
  readonly message_ids: string[] | null;
}

/** As long a process has to append what it stored. */
const OWN_S = 10;
const GROUPS_PER_REOPEN = 500;
const GROUPS_PER_SWEEP = 1_000;

/** The durable side of produce: one statement per group of rows. Tables: `event_groups`, `event_keys`, `audit_pages`. */
export class Inbox {
  readonly #ctx: EventBusContext;

  constructor(ctx: EventBusContext) {
    this.#ctx = ctx;
  }

  /**
   * Commits rows, and with them the marks and journal of what was appended before. Answers the group of those that are new, to be appended
   * by who asks; none when all are copies. `keys` are those of the rows, NO_KEY where one is to be minted.
   */
  async commit(
    rows: readonly InboxRow[],
    keys: readonly string[],
    marks: readonly InboxGroup[] = [],
    journal: readonly JournalEntry[] = [],
  ): Promise<InboxGroup | undefined> {
    const { sql } = this.#ctx.db;
    const id = this.#ctx.platform.newId();
    const [taken] = await sql<{ positions: number[] | null }[]>`
      with marked as (
        update event_groups g set message_ids = m.message_ids::text[], done_at = now()
        from unnest(${listOf(marks.map(mark => mark.id))}::text::uuid[], ${listOf(marks.map(mark => mark.attempt))}::text::int[],
          ${marks.map(messageIdsOf)}::text[]) m(id, attempt, message_ids)
        where g.id = m.id and g.attempt = m.attempt
      ), journaled as (
        insert into audit_pages (at, entries) select now(), j.entries
          from (select ${journal.length > 0 ? JSON.stringify(journal) : null}::text as entries) j where j.entries is not null
      ), ${stored(sql, id, rows, keys, OWN_S)}
      returning case when cardinality(positions) < ${rows.length}::int then positions end as positions`;
    return taken && new InboxGroup({ id, attempt: 1, rows, positions: taken.positions ?? rows.map((_, position) => position) });
  }

  /** Puts rows into the inbox in somebody's transaction, for the relay to append. Those whose key was taken before are left out. */
  static async leave(sql: Sql, id: string, rows: readonly InboxRow[]): Promise<void> {
    await sql`with ${stored(sql, id, rows, rows.map(keyOf), 0)}`;
  }

  /** What was accepted before under these keys. */
  async find(keys: readonly string[]): Promise<Map<string, Known>> {
    const found = await this.#ctx.db.sql<
      { key: string; group_id: string; position: number; env: string; family: string; message_id: string | null }[]
    >`
      with known as (select key, group_id, position from event_keys where key = any(${listOf(keys)}::text::uuid[])),
        -- Read once for all of its keys: a batch that is sent again is mostly one group.
        held as materialized (select id, message_ids, events::jsonb as events from event_groups where id in (select group_id from known))
      select replace(key::text, '-', '') as key, group_id, position,
        coalesce(events -> 'rows' -> position ->> 'env', events -> 'shared' ->> 'env') as env,
        coalesce(events -> 'rows' -> position ->> 'family', events -> 'shared' ->> 'family') as family,
          nullif(message_ids[position + 1], '') as message_id
      from known join held on held.id = group_id`;
    return new Map(
      found.map(({ key, group_id, position, env, family, message_id }) => [key, { group: group_id, position, env, family, message_id }]),
    );
  }

  /** What was accepted before under keys that the bus minted, by the row that has such a key now. */
  static async minted(sql: Sql, rows: readonly InboxRow[]): Promise<Map<InboxRow, Known>> {
    const known = new Map<InboxRow, Known>();
    const places = rows.flatMap(row => {
      const place = placeOf(row.envelope.idempotency_key);
      return place ? [{ row, ...place }] : [];
    });
    if (places.length === 0) return known;
    const stored = await sql<Stored[]>`select id, attempt, events, positions, message_ids from event_groups
      where id = any(${listOf(places.map(({ group }) => group))}::text::uuid[])`;
    const groups = new Map(inOrder(stored).map(group => [group.id, group]));
    for (const { row, group, position } of places) {
      const first = groups.get(group)?.rows[position];
      if (first === undefined || keyOf(first) !== keyOf(row)) continue;
      known.set(row, {
        group,
        position,
        env: first.env,
        family: first.family,
        message_id: groups.get(group)?.messageIds[position] || null,
      });
    }
    return known;
  }

  /**
   * Takes over groups that their appender has had for a second, and those that are wanted `atOnce`, in the order of their acceptance.
   * What the first appender still makes of them is one more duplicate.
   */
  async takeOver(ids: readonly string[], atOnce: readonly string[]): Promise<InboxGroup[]> {
    const groups = await this.#ctx.db.sql<Stored[]>`
      update event_groups set attempt = attempt + 1, append_by = now() + interval '10 s'
      where id in (select id from event_groups where id = any(${listOf(ids)}::text::uuid[]) and done_at is null
        and (append_by < now() + interval '9 s' or id = any(${listOf(atOnce)}::text::uuid[])) order by id for update)
      returning id, attempt, events, positions, message_ids`;
    return inOrder(groups);
  }

  /** Whether there are groups whose appender gave up. */
  async isDue(): Promise<boolean> {
    const [row] = await this.#ctx.db.sql<
      { due: boolean }[]
    >`select exists (select from event_groups where done_at is null and append_by <= now()) as due`;
    return row?.due === true;
  }

  /**
   * Takes groups whose appender gave up, oldest first, of up to `limit` rows together; one at least. One that somebody has in hand is
   * waited for: what is behind it must not come before it.
   */
  async lease(limit: number): Promise<InboxGroup[]> {
    const groups = await this.#ctx.db.sql<Stored[]>`
      with due as (
        select id, cardinality(positions) as rows from event_groups where done_at is null and append_by <= now() order by id limit ${limit}
          for update
      ), counted as (
        select id, rows, sum(rows) over (order by id) as through from due
      )
      update event_groups set attempt = attempt + 1, append_by = now() + interval '10 s'
      where id in (select id from counted where through <= ${limit} or through = rows)
      returning id, attempt, events, positions, message_ids`;
    return inOrder(groups);
  }

  /**
   * Gives up groups after a failed append, with what of them was appended: anybody may take them in `afterMs`. With `tell`, relays are
   * woken.
   */
  async release(groups: readonly InboxGroup[], { afterMs = 0, tell = false }: { afterMs?: number; tell?: boolean } = {}): Promise<void> {
    await this.#ctx.db.sql`
      with released as (
        update event_groups g set message_ids = r.message_ids::text[], append_by = now() + ${afterMs}::int * interval '1 ms'
        from unnest(${listOf(groups.map(group => group.id))}::text::uuid[], ${listOf(groups.map(group => group.attempt))}::text::int[],
          ${groups.map(messageIdsOf)}::text[]) r(id, attempt, message_ids)
        where g.id = r.id and g.attempt = r.attempt and g.done_at is null
        returning 1
      )
      select case when ${tell} and exists (select from released) then pg_notify('bus_inbox', '') end`;
  }

  /**
   * Makes groups that were done in [`from`, `until`) due again: the store that had taken them has come back without them. How many; 0 when
   * none is left.
   */
  async reopen(from: string | undefined, until: string): Promise<number> {
    const reopened = await this.#ctx.db.sql<object[]>`
      update event_groups set message_ids = null, done_at = null, attempt = attempt + 1, append_by = now()
      where id in (select id from event_groups where done_at >= coalesce(${from ?? null}::timestamptz, '-infinity')
        and done_at < ${until}::timestamptz order by done_at limit ${GROUPS_PER_REOPEN})
      returning 1`;
    return reopened.length;
  }

  /** What was under way when the store went may have reached the old one and not the new: its marks must not count. */
  async fenceUnmarked(): Promise<void> {
    await this.#ctx.db.sql`update event_groups set message_ids = null, attempt = attempt + 1, append_by = now() where done_at is null`;
  }

  async now(): Promise<string> {
    const [row] = await this.#ctx.db.sql<
      { now: string }[]
    >`select to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`;
    return (row as { now: string }).now;
  }

  /** Events that are on no stream. */
  async unrelayed(): Promise<number> {
    const [row] = await this.#ctx.db.sql<{ count: number }[]>`
      select coalesce(sum(cardinality(positions) - cardinality(array_remove(coalesce(message_ids, '{}'), ''))), 0)::int as count
        from event_groups where done_at is null`;
    return row?.count ?? 0;
  }

  /** Deletes what retention no longer keeps, at most so many rows per call; answers how many. */
  async sweep(): Promise<number> {
    const { sql } = this.#ctx.db;
    const [gone] = await sql<{ groups: number }[]>`
      with gone as (
        delete from event_groups where id in (select id from event_groups where done_at < now() - interval '7 days' order by done_at
          limit ${GROUPS_PER_SWEEP}) returning keys
      ), forgotten as (
        delete from event_keys where key in (select unnest(keys) from gone)
      )
      select count(*)::int as groups from gone`;
    const journal = await sql<
      object[]
    >`delete from audit_pages where id in (select id from audit_pages where at < now() - interval '90 days' order by at
      limit ${GROUPS_PER_SWEEP}) returning 1`;
    return (gone?.groups ?? 0) + journal.length;
  }
}

/**
 * The rows whose keys are new or to be minted, as a group that is its appender's for so many seconds: the end of a statement, `taken`,
 * `placed` and the insert.
 */
function stored(sql: Sql, id: string, rows: readonly InboxRow[], keys: readonly string[], seconds: number): unknown {
  const [given, minted]: [number[], number[]] = [[], []];
  for (const [position, key] of keys.entries()) (key === NO_KEY ? minted : given).push(position);
  return sql`
  taken as (
    insert into event_keys (key, group_id, position)
    -- One order for everybody: two processes with the same keys wait for each other instead of deadlocking.
    select k.key, ${id}::text::uuid, k.position from unnest(${listOf(given.map(position => keys[position] as string))}::text::uuid[],
      ${listOf(given)}::text::int[]) k(key, position) order by k.key
    on conflict do nothing returning key, position
  ), placed as (
    select position from taken union all select unnest(${listOf(minted)}::text::int[])
  )
  insert into event_groups (id, events, keys, positions, append_by)
  select ${id}::text::uuid, ${InboxGroup.write(rows)}::text, array(select key from taken), array_agg(position
    order by position), now() + make_interval(secs => ${seconds}::int) from placed having count(*) > 0`;
}

/** An array in Postgres's own writing, of words that need no quotes there: the driver would look at each of thousands. */
const listOf = (words: readonly (string | number)[]): string => `{${words.map(word => (word === '' ? '""' : word)).join(',')}}`;
const messageIdsOf = ({ messageIds }: InboxGroup): string => listOf(messageIds);

const inOrder = (groups: readonly Stored[]): InboxGroup[] =>
  groups
    .map(
      ({ id, attempt, events, positions, message_ids }) =>
        new InboxGroup({ id, attempt, positions, rows: InboxGroup.read(events), messageIds: message_ids }),
    )
    .sort((left, right) => (left.id < right.id ? -1 : 1));
