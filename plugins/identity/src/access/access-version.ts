import type { Ctx } from '../context.ts';

/** Moves the version of environments whose access model changed: the next request on every process sees the change (day-one 6). */
export function bumpAccess(ctx: Ctx, envIds: Iterable<string>): Promise<void> {
  return bump(ctx, envIds, []);
}

/** Moves the version of single people: what changed is theirs alone. */
export function bumpPeople(ctx: Ctx, userIds: Iterable<string>): Promise<void> {
  return bump(ctx, [], userIds);
}

/** Both at once. */
export async function bump(ctx: Ctx, envIds: Iterable<string>, userIds: Iterable<string>): Promise<void> {
  const keys = [
    ...[...new Set(envIds)].map(envId => `authz:{${envId}}`),
    ...[...new Set(userIds)].map(userId => `authz:person:{${userId}}`),
  ];
  if (keys.length === 0) return;
  for (const answer of await ctx.kv.pipeline(keys.map(key => ['INCR', key] as const))) if (answer instanceof Error) throw answer;
}

/** Moves the version of people who are gone, and leaves nothing behind: no answer that knew them lives as long. */
export async function forgetPeople(ctx: Ctx, userIds: Iterable<string>): Promise<void> {
  const commands = [...userIds].flatMap(userId => [
    ['INCR', `authz:person:{${userId}}`] as const,
    ['EXPIRE', `authz:person:{${userId}}`, 3_600] as const,
  ]);
  for (const answer of await ctx.kv.pipeline(commands)) if (answer instanceof Error) throw answer;
}

/** A process that died between its commit and its bump left a change nobody heard of; the next start tells everybody. */
export async function bumpEveryRealm(ctx: Ctx): Promise<void> {
  const realms = await ctx.db.sql<{ env_id: string }[]>`select env_id from realms`;
  await bumpAccess(
    ctx,
    realms.map(({ env_id }) => env_id),
  );
}
