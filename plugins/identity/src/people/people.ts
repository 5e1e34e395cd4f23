import { type Caller, isId, type RequestOf, sorted, type Sql } from '@platform/sdk';
import type { Attempts } from '../sign-in/attempts.ts';
import type { Contract, Ctx } from '../context.ts';
import type { EffectiveAccess } from '../access/effective-access.ts';
import { bytesOf, type Read, stateName } from '../protocol/protocol-turn.ts';
import type { Account, Person, PersonWithPassword } from './person.ts';

/** Whether an account has an e-mail address. One that a directory or a wallet opened may have none: then its name stands in the column. */
export const isAddress = (email: string): boolean => email.includes('@');

/** What tokens say of the address: nothing where there is none. */
export const addressClaims = ({ email, email_verified }: Pick<Person, 'email' | 'email_verified'>) =>
  isAddress(email) ? { email, email_verified } : {};

/** People of the realms. */
export class People {
  readonly #ctx: Ctx;
  readonly #access: EffectiveAccess;
  readonly #attempts: Attempts;

  constructor(ctx: Ctx, { access, attempts }: { access: EffectiveAccess; attempts: Attempts }) {
    this.#ctx = ctx;
    this.#access = access;
    this.#attempts = attempts;
  }

  async byEmail(envId: string, email: string, sql: Sql = this.#ctx.db.sql): Promise<PersonWithPassword | undefined> {
    const [row] = await sql<
      PersonWithPassword[]
    >`${withPassword(sql)} where u.env_id = ${envId} and u.email_ci = ${email.trim().toLowerCase()}`;
    return row;
  }

  /** Who signs in, with the authorization that the page belongs to: null where none stands under that name. */
  async signingIn(
    envId: string,
    email: string,
    uid: string | undefined,
  ): Promise<(PersonWithPassword & { readonly begun: Read | null }) | undefined> {
    const { sql } = this.#ctx.db;
    const begun = sql`, (${interaction(sql, envId, uid)}) as begun`;
    const [row] = await sql<
      (PersonWithPassword & { begun: Read | null })[]
    >`${withPassword(sql, begun)} where u.env_id = ${envId} and u.email_ci = ${email.trim().toLowerCase()}`;
    return row;
  }

  async withPassword(userId: string): Promise<PersonWithPassword | undefined> {
    const { sql } = this.#ctx.db;
    const [row] = await sql<PersonWithPassword[]>`${withPassword(sql)} where u.user_id = ${userId}`;
    return row;
  }

  async byId(userId: string): Promise<Person | undefined> {
    const [row] = isId(userId)
      ? await this.#ctx.db.sql<Person[]>`select ${columns(this.#ctx.db.sql)} from users u where user_id = ${userId}`
      : [];
    return row;
  }

  async list({ query, env: envId }: RequestOf<Contract, 'listUsers'>) {
    const { sql } = this.#ctx.db;
    const words = query.q === undefined ? null : `%${query.q.replaceAll(/[\\%_]/g, '\\$&')}%`;
    const spec = sorted({ list: `people ${envId} ${words}`, order: { 'u.user_id': 'id' } }, query, {
      email: ['u.email_ci', 'text'],
      created_at: ['u.created_at', 'time'],
    });
    const { items: page, next_cursor } = await this.#ctx.page(
      query,
      spec,
      ({ where, order, limit }) => sql<(Person & { mfa_enrolled: boolean })[]>`
      select u.*, ${enrolled(sql)} as mfa_enrolled from users u where env_id = ${envId}
        and (${words}::text is null or email ilike ${words} or display_name ilike ${words}) and ${where} order by ${order} limit ${limit}`,
    );
    const locked = await this.#locked(page);
    const items = page.map((person, index) => {
      const { user_id, email, display_name, mfa_enrolled, created_at, last_sign_in_at } = person;
      return { user_id, email, display_name, status: statusOf(person, locked[index]), mfa_enrolled, created_at, last_sign_in_at };
    });
    return { items, next_cursor };
  }

  /** The person of a route, as far as the caller's environment reaches. */
  async reachable({ params, caller, env: envId }: Named): Promise<Person & { readonly mfa_enrolled: boolean }> {
    const { sql } = this.#ctx.db;
    const [person] = await sql<(Person & { mfa_enrolled: boolean })[]>`
      select u.*, ${enrolled(sql)} as mfa_enrolled from users u where user_id = ${params.user_id}`;
    if (!person || (person.env_id !== envId && !caller.platformAdmin)) throw this.#ctx.problem('user_not_found');
    return person;
  }

  async get(request: Named) {
    const person = await this.reachable(request);
    const [locked] = await this.#locked([person]);

    const groups = await this.#access.groupsOf(person.user_id);
    return {
      user_id: person.user_id,
      email: person.email,
      email_verified: person.email_verified,
      display_name: person.display_name,
      status: statusOf(person, locked),
      groups: [...new Set(groups.map(({ name }) => name))],
      mfa_enrolled: person.mfa_enrolled,
      created_at: person.created_at,
      last_sign_in_at: person.last_sign_in_at,
    };
  }
  /** Too many failed passwords, or codes. */
  async #locked(people: readonly Person[]): Promise<boolean[]> {
    const names = people.flatMap(({ env_id, email, user_id }) => [
      this.#attempts.account(env_id, email),
      this.#attempts.secondFactor(user_id),
    ]);
    const locked = await this.#attempts.locked(names);
    return people.map((_, index) => Boolean(locked[2 * index] || locked[2 * index + 1]));
  }
}

interface Named {
  readonly params: { readonly user_id: string };
  readonly caller: Caller;
  readonly env: string;
}

const columns = (sql: Sql): unknown =>
  sql`u.user_id, u.env_id, u.email, u.email_verified, u.display_name, u.status, u.must_change_password, u.created_at, u.last_sign_in_at,
    u.locale`;
/** An {@link Account} of `users u`, read along with a row of something else; null where there is none. */
export const accountOf = (sql: Sql): unknown => sql`
  case when u.user_id is not null then jsonb_build_object('user_id', u.user_id, 'env_id', u.env_id, 'email', u.email, 'email_verified',
    u.email_verified,
    'display_name', u.display_name, 'status', u.status) end`;
/** One look for all that a sign-in asks of a person. */
const withPassword = (sql: Sql, beside: unknown = sql``): unknown => sql`
  select ${columns(sql)} ${beside}, p.hash, u.password_since::text as password_since, ${enrolled(sql)} as mfa_enrolled,
    (select count(*)::int from recovery_codes c where c.user_id = u.user_id and c.used_at is null) as recovery_codes_left
  from users u left join passwords p using (user_id)`;
const interaction = (sql: Sql, envId: string, uid: string | undefined): unknown => sql`
  select jsonb_build_object('payload', payload, 'consumed_at', consumed_at) from oidc_state
  where env_id = ${envId} and model = 'Interaction' and id_hash = ${uid === undefined ? null : bytesOf(stateName('Interaction', uid))}
    and expires_at > now()`;
/** Counted, for what merely has to exist is looked for among everybody's. */
const enrolled = (sql: Sql): unknown =>
  sql`(select count(*) > 0 from authenticators a where a.user_id = u.user_id and a.confirmed_at is not null)`;
const statusOf = ({ status }: Person, locked: boolean | undefined): Person['status'] => (status === 'active' && locked ? 'locked' : status);
