import type { Sql } from '@platform/sdk';
import { accountOf } from '../people/people.ts';
import type { Account } from '../people/person.ts';
import { bytesOf, type ProtocolTurn, type Read, stateName, type StateName } from './protocol-turn.ts';

const RETURN = /^\/oauth\/authorize\/([\w-]{1,100})$/;

/** The interaction that a browser comes back to; nothing on other paths. */
export const interactionOf = (path: string): string | undefined => RETURN.exec(path)?.[1];

/**
 * What a browser that comes back to its authorization is asked for, read in one look for the turn that goes on: its session with the
 * person, the interaction, and the request that was pushed for it. What is not there is looked for again when it is asked for.
 */
export async function readReturn(
  sql: Sql,
  turn: ProtocolTurn,
  envId: string,
  { session, interaction }: { session: string; interaction: string },
): Promise<void> {
  const rows = await sql<(StateName & Read & { person: Account | null })[]>`
    with named as (
      select s.* from (values ('Session', ${bytesOf(stateName('Session', session))}),
        ('Interaction', ${bytesOf(stateName('Interaction', interaction))})) n(model, id_hash)
      cross join lateral (${look(sql, envId, sql`o.model = n.model and o.id_hash = n.id_hash`)}) s),
    pushed as (
      select b.* from named cross join lateral (
        ${look(
          sql,
          envId,
          sql`named.model = 'Interaction' and o.model = 'PushedAuthorizationRequest'
          and o.id_hash = sha256(convert_to(named.payload ->> 'parJti', 'UTF8'))`,
        )}) b)
    select s.model, encode(s.id_hash, 'hex') as id_hash, s.payload, s.consumed_at, ${accountOf(sql)} as person
    from (table named union all table pushed) s left join users u on s.model = 'Session' and u.user_id = s.account_id::uuid`;
  for (const { model, id_hash, payload, consumed_at, person } of rows) {
    turn.bring({ model, id_hash }, { payload, consumed_at });
    if (person) turn.bringPerson(person);
  }
}

/** One row by its key; apart (`offset 0`), so that it is not read for by all that the environment has. */
const look = (sql: Sql, envId: string, key: unknown): unknown => sql`
  select model, id_hash, payload, consumed_at, account_id from oidc_state o where env_id = ${envId} and ${key}
    and (expires_at is null or expires_at > now()) offset 0`;
