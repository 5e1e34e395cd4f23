import { type RequestOf, SYSTEM } from '@platform/sdk';
import type { Contract, Ctx } from './context.ts';
import type { EffectiveAccess } from './effective-access.ts';
import { isId } from './ids.ts';

export interface Person {
  readonly user_id: string;
  readonly env_id: string;
  readonly email: string;
  readonly email_verified: boolean;
  readonly display_name: string | null;
  readonly status: 'active' | 'locked' | 'disabled';
  readonly must_change_password: boolean;
  readonly created_at: string;
  readonly last_sign_in_at: string | null;
}

/** People of the realms. */
export class People {
  readonly #ctx: Ctx;
  readonly #access: EffectiveAccess;

  constructor(ctx: Ctx, access: EffectiveAccess) {
    this.#ctx = ctx;
    this.#access = access;
  }

  async byEmail(envId: string, email: string): Promise<(Person & { hash: string | null }) | undefined> {
    const [row] = await this.#ctx.db.sql<(Person & { hash: string | null })[]>`
      select u.*, p.hash from users u left join passwords p using (user_id) where u.env_id = ${envId} and u.email_ci = ${email.trim().toLowerCase()}`;
    return row;
  }

  async withPassword(userId: string): Promise<(Person & { hash: string | null }) | undefined> {
    const [row] = await this.#ctx.db.sql<(Person & { hash: string | null })[]>`select u.*, p.hash from users u left join passwords p using (user_id) where u.user_id = ${userId}`;
    return row;
  }

  async byId(userId: string): Promise<Person | undefined> {
    const [row] = isId(userId) ? await this.#ctx.db.sql<Person[]>`select * from users where user_id = ${userId}` : [];
    return row;
  }

  async list({ query, caller, targetEnvId }: RequestOf<Contract, 'listUsers'>) {
    const limit = query.limit ?? 50;
    const envId = targetEnvId ?? caller.envId ?? SYSTEM.envId;
    const rows = await this.#ctx.db.sql<Person[]>`
      select * from users where env_id = ${envId} and (${query.cursor ?? null}::text is null or user_id::text < ${query.cursor ?? null})
      order by user_id::text desc limit ${limit + 1}`;
    const items = rows.slice(0, limit).map(({ user_id, email, display_name, status, created_at, last_sign_in_at }) => ({ user_id, email, display_name, status, created_at, last_sign_in_at }));
    return { items, next_cursor: rows.length > limit ? (items.at(-1)?.user_id ?? null) : null };
  }

  async get({ params, caller, targetEnvId }: RequestOf<Contract, 'getUser'>) {
    const person = await this.byId(params.user_id);
    const envId = targetEnvId ?? caller.envId ?? SYSTEM.envId;
    if (!person || (person.env_id !== envId && !caller.platformAdmin)) throw this.#ctx.problem('user_not_found');
    const groups = await this.#access.groupsOf(person.user_id);
    return {
      user_id: person.user_id,
      email: person.email,
      email_verified: person.email_verified,
      display_name: person.display_name,
      status: person.status,
      groups: [...new Set(groups.map(({ name }) => name))],
      mfa_enrolled: false,
      created_at: person.created_at,
      last_sign_in_at: person.last_sign_in_at,
    };
  }
}
