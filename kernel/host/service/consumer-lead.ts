import type { Lead } from '../../outbox/consumption/ordered-consumer.ts';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';

/**
 * The lead of an ordered consumer: a row of its service's database that counts for thirty seconds after it was last renewed, on the
 * database's own clock. Nothing while another process has it.
 */
export async function takeLead(pool: PostgresPool, consumer: string, holder: string): Promise<Lead | undefined> {
  const held = async (): Promise<boolean> => {
    const rows = await pool.raw`
      insert into consumer_leads (consumer, holder, until) values (${consumer}, ${holder}, now() + interval '30 s')
      on conflict (consumer) do update set holder = excluded.holder, until = excluded.until
        where consumer_leads.holder = excluded.holder or consumer_leads.until < now()
      returning 1`;
    return rows.length === 1;
  };
  if (!(await held())) return undefined;
  return {
    held,
    [Symbol.asyncDispose]: async () =>
      void (await pool.raw`delete from consumer_leads where consumer = ${consumer} and holder = ${holder}`.catch(() => undefined)),
  };
}
