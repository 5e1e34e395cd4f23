import type { Ctx } from './context.ts';

const STEP = 5_000;

/** Deletes what is past its retention, in steps. */
export async function forget({ db: { sql } }: Ctx, signal: AbortSignal): Promise<void> {
  for (let gone = STEP; gone >= STEP && !signal.aborted; ) {
    const rows = await sql<object[]>`delete from measurements where measurement_id in (select measurement_id from measurements where summed
      and at < now() - interval '8 days' limit ${STEP}) returning 1`;
    gone = rows.length;
  }
  await sql`delete from aggregates where minute < now() - interval '400 days'`;
  await sql`delete from traffic where (period = 'minute' and at < now() - interval '8 days') or at < now() - interval '400 days'`;
}
