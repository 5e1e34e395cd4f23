import type postgres from 'postgres';
import { StorageError } from '../storage-error.ts';

const SERVICE = /^[a-z][a-z0-9]{0,30}$/;

/** The role a service logs in with. */
export function roleOf(service: string): string {
  return `platform_${checked(service)}`;
}

/** The schema a service owns. */
export function schemaOf(service: string): string {
  return checked(service);
}

/** The channel a service's outbox is announced on. */
export function outboxChannel(service: string): string {
  return `${checked(service)}_outbox`;
}

/** Creates `database` unless it is there, and lets nobody in by default. `sql` is an administrator of any other database. */
export async function ensureDatabase(sql: postgres.Sql, database: string): Promise<void> {
  const [there] = await sql`select 1 from pg_database where datname = ${database}`;
  if (there !== undefined) return;
  try {
    await sql.unsafe(`create database "${database}"`);
  } catch (error) {
    if (!['42P04', '23505'].includes((error as { code?: string }).code ?? '')) throw error; // another process was faster
  }
  await sql.unsafe(
    `revoke all on database "${database}" from public; revoke connect, temporary on database postgres, template1 from public`,
  );
}

/**
 * Gives a service its role and its schema, and nothing else. Idempotent; processes that do it at once wait for each other.
 * `admin` is a superuser of the platform's database, or owns it and may create roles.
 */
export async function ensureServiceSchema(admin: postgres.Sql, service: string): Promise<void> {
  const statements = grants(service);
  const [state] = await admin<{ done: boolean }[]>`
    select exists (select 1 from pg_namespace n join pg_roles r on r.oid = n.nspowner
                   where n.nspname = ${schemaOf(service)} and r.rolname = ${roleOf(service)} and r.rolcanlogin
                     and has_database_privilege(r.oid, current_database(), 'connect')
                     and not has_schema_privilege(r.oid, 'public', 'usage')) as done`;
  if (state?.done) return;
  await admin.begin(async tx => {
    // Grants rewrite shared rows of the catalog, which fails when two sessions do it at once: one lock for all services.
    await tx`select pg_advisory_xact_lock(hashtextextended('platform:service-schema', 0))`;
    const [role] = await tx`select 1 from pg_roles where rolname = ${roleOf(service)}`;
    if (role === undefined) await tx.unsafe(createRole(service));
    const [database] = await tx<{ name: string }[]>`select quote_ident(current_database()) as name`;
    await tx.unsafe(statements.replaceAll(':database', database?.name ?? ''));
  });
}

/** What the administrator of a managed Postgres must run once, for `platform migrate --print-roles`. */
export function printRoles(
  services: readonly string[],
  { login, database = 'platform' }: { login?: string; database?: string } = {},
): string {
  const blocks = services.map(service => {
    // Making a schema for a role takes membership in it, which administrators of managed servers do not have by themselves.
    const members = `grant ${roleOf(service)} to current_user;\n${
      login === undefined ? '' : `grant ${roleOf(service)} to "${login}" with inherit false, set true;\n`
    }`;
    return `-- ${service}\n${createRole(service)}\n${members}${grants(service).replaceAll(':database', `"${database}"`)}`;
  });
  return `${blocks.join('\n')}\n`;
}

function createRole(service: string): string {
  return `create role ${roleOf(service)} login password null nosuperuser nocreatedb nocreaterole noreplication nobypassrls noinherit connection limit 60;`;
}

function grants(service: string): string {
  const [role, schema] = [roleOf(service), schemaOf(service)];
  return `revoke all on schema public from public;
create schema if not exists "${schema}" authorization ${role};
revoke all on schema "${schema}" from public;
grant connect on database :database to ${role};
alter role ${role} in database :database set search_path = "${schema}";
`;
}

function checked(service: string): string {
  if (!SERVICE.test(service) || service === 'public') throw new StorageError('service_name', `${JSON.stringify(service)} is no service id`);
  return service;
}
