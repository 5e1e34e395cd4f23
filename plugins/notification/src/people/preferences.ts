import type { RequestOf, Sql } from '@platform/sdk';
import type { Preferences as Wishes } from '../../contract/schema/preference.ts';
import { type Contract, type Ctx, nowOf } from '../context.ts';
import { isQuiet, isZone } from './quiet-hours.ts';

const NONE: Wishes = { muted_categories: [], quiet_hours: [], timezone: null };
export interface Reader {
  readonly env_id: string;
  readonly user_id: string;
}

/** What people want to be sent. It counts for channels that lead out of the platform, never for the inbox (NTF-029). */
export class Preferences {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async get({ caller, env }: RequestOf<Contract, 'getPreferences'>): Promise<Wishes> {
    const reader = { env_id: env, user_id: caller.userId ?? caller.subject };
    return (await this.of(this.#ctx.db.sql, [reader])).get(keyOf(reader)) ?? NONE;
  }

  async put({ body, caller, env }: RequestOf<Contract, 'putPreferences'>): Promise<Wishes> {
    const timezone = body.timezone || null;
    if (timezone !== null && !isZone(timezone))
      throw this.#ctx.problem('timezone_unknown', { detail: 'Use a name of the IANA database, such as Europe/Berlin.' });
    const wishes = { muted_categories: body.muted_categories, quiet_hours: body.quiet_hours, timezone };
    const { sql } = this.#ctx.db;
    await sql`insert into preferences (env_id, user_id, muted_categories, quiet_hours, timezone, updated_at)
      values (${env}, ${caller.userId ?? caller.subject}, ${wishes.muted_categories}::text[], ${sql.json(wishes.quiet_hours)}, ${timezone},
        ${nowOf(this.#ctx)})
      on conflict (env_id, user_id) do update set muted_categories = excluded.muted_categories, quiet_hours = excluded.quiet_hours,
        timezone = excluded.timezone, updated_at = excluded.updated_at`;
    return wishes;
  }

  /** Adds one category to those that somebody does not want. */
  async mute({ env_id, user_id }: Reader, category: string): Promise<void> {
    await this.#ctx.db.sql`insert into preferences (env_id, user_id, muted_categories, quiet_hours, updated_at)
        values (${env_id}, ${user_id}, ${[category]}::text[], '[]', ${nowOf(this.#ctx)})
      on conflict (env_id, user_id) do update
        set muted_categories = array(select distinct unnest(preferences.muted_categories || excluded.muted_categories)),
        updated_at = excluded.updated_at`;
  }

  /** The wishes of several people, by {@link keyOf}; who has none is not in it. */
  async of(sql: Sql, readers: readonly Reader[]): Promise<Map<string, Wishes>> {
    if (readers.length === 0) return new Map();
    const rows = await sql<(Wishes & Reader)[]>`
      select env_id, user_id, muted_categories, quiet_hours, timezone from preferences
      where (env_id, user_id) in (select (asked->>'env_id')::uuid, asked->>'user_id'
        from jsonb_array_elements(${sql.json(readers.map(({ env_id, user_id }) => ({ env_id, user_id })))}::jsonb) as asked)`;
    return new Map(rows.map(({ env_id, user_id, ...wishes }) => [keyOf({ env_id, user_id }), wishes]));
  }
}

export const keyOf = ({ env_id, user_id }: Reader): string => `${env_id} ${user_id}`;

/** Why somebody's preferences keep a message from going out; `undefined` when they do not. */
export function heldBack(wishes: Wishes | undefined, category: string, at: Date): string | undefined {
  if (!wishes) return undefined;
  if ((wishes.muted_categories as readonly string[]).includes(category))
    return `muted: the recipient does not want messages of the category ${category} outside the inbox`;
  if (isQuiet(wishes.quiet_hours, at, wishes.timezone))
    return `quiet hours: it was a quiet hour of the recipient (${wishes.timezone ?? 'UTC'})`;
  return undefined;
}
