import type { Caller, CronTimes } from '@platform/sdk';
import type { NewSchedule, Schedule } from '../contract/schema.ts';
import type { Ctx, Of, SchedulerTx } from './context.ts';

const ZONE = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+){0,2}$/;
const PER_SERVICE = 200;

/** What services want done at certain times (G-CRON-01). A name belongs to the service that made it. */
export class Schedules {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** Every start of a service says it again: what is the same keeps its next time, so that one which was missed meanwhile still comes. */
  async put({ params: { name }, body, caller }: Of<'putSchedule'>): Promise<Schedule> {
    const { db, clock, problem } = this.#ctx;
    if (body.target.service !== caller.service)
      throw problem('target_foreign', { detail: `The caller is ${caller.service}; a schedule calls the service that made it.` });
    const now = clock.now();
    const next = this.#timesOf(body).next(now);
    if (!next) throw problem('cron_invalid', { detail: 'There is no such time ever again.' });
    const { cron, timezone, env_id, target } = body;
    await db.tx(async tx => {
      await this.#requireRoom(tx, caller.service, name);
      const row = {
        name,
        service: caller.service,
        env_id,
        cron,
        timezone,
        path: target.path,
        next_at: next,
        created_at: now,
        updated_at: now,
      };
      await tx.sql`
        insert into schedules ${tx.sql.row(row)} on conflict (name) do update set
          env_id = excluded.env_id, cron = excluded.cron, timezone = excluded.timezone, path = excluded.path,
            updated_at = excluded.updated_at,
          next_at = case when (schedules.cron, schedules.timezone) = (excluded.cron, excluded.timezone) then schedules.next_at
            else excluded.next_at end
        where schedules.service = excluded.service and (schedules.env_id, schedules.cron, schedules.timezone, schedules.path)
          is distinct from (excluded.env_id, excluded.cron, excluded.timezone, excluded.path)`;
    });
    const made = await this.#find(name);
    if (made?.service !== caller.service)
      throw problem('schedule_taken', { detail: `${name} belongs to another service; begin the name with your own.` });
    return made;
  }

  list({ service, status, ...query }: Of<'listSchedules'>['query'], caller: Caller) {
    const { db, page } = this.#ctx;
    const [s, p, own] = [service ?? null, status ?? null, ownerOf(caller)];
    return page(
      query,
      { list: `schedules ${s} ${p} ${own}`, order: { name: 'text' }, ascending: true },
      ({ where, order, limit }) => db.sql<Schedule[]>`
        select * from (${this.#shown()}) as shown
        where (${s}::text is null or service = ${s}) and (${p}::text is null or status = ${p})
          and (${own}::text is null or service = ${own}) and ${where}
        order by ${order} limit ${limit}`,
    );
  }

  /** A workload sees its own. Throws `schedule_not_found`. */
  async get(name: string, caller: Caller): Promise<Schedule> {
    const found = await this.#find(name);
    const own = ownerOf(caller);
    if (!found || (own !== null && found.service !== own))
      throw this.#ctx.problem('schedule_not_found', { detail: 'There is no schedule of this name.' });
    return found;
  }

  async remove(name: string, caller: Caller): Promise<void> {
    const { service, env_id } = await this.get(name, caller);
    await this.#ctx.db.tx(async tx => {
      const [gone] = await tx.sql<object[]>`delete from schedules where name = ${name} and service = ${service} returning 1`;
      if (gone) await tx.audit({ action: 'cron.schedule.deleted', envId: env_id, caller, resource: { type: 'schedule', id: name } });
    });
  }

  /** What passes while it rests does not come later: it goes on from its next time. */
  async rest(name: string, paused: boolean, caller: Caller): Promise<Schedule> {
    const schedule = await this.get(name, caller);
    const now = this.#ctx.clock.now();
    const next = this.#timesOf(schedule).next(now) ?? null;
    await this.#ctx.db.tx(async tx => {
      const change = { paused, updated_at: now, ...(paused ? {} : { next_at: next }) };
      const [changed] = await tx.sql<object[]>`
        update schedules set ${tx.sql.row(change)} where name = ${name} and paused <> ${paused} returning 1`;
      const action = paused ? 'cron.schedule.paused' : 'cron.schedule.resumed';
      if (changed) await tx.audit({ action, envId: schedule.env_id, caller, resource: { type: 'schedule', id: name } });
    });
    return this.get(name, caller);
  }

  #timesOf({ cron, timezone }: Pick<NewSchedule, 'cron' | 'timezone'>): CronTimes {
    if (!isZone(timezone))
      throw this.#ctx.problem('timezone_unknown', { detail: 'Name a zone of the IANA database, such as Europe/Berlin or UTC.' });
    const times = this.#ctx.cron(cron, timezone);
    if (!times)
      throw this.#ctx.problem('cron_invalid', {
        detail: 'Write five fields: minute, hour, day of the month, month, day of the week, such as 5 0 * * *.',
      });
    return times;
  }

  async #requireRoom({ sql }: SchedulerTx, service: string, name: string): Promise<void> {
    await sql`select pg_advisory_xact_lock(hashtextextended(${`cron ${service}`}, 0))`;
    const [{ count }] = await sql<[{ count: number }]>`
      select count(*)::int as count from schedules where service = ${service} and name <> ${name}`;
    if (count < PER_SERVICE) return;
    this.#ctx.log.warn({ service, most: PER_SERVICE }, 'a service has too many schedules');
    throw this.#ctx.problem('too_many_schedules', { detail: `A service has at most ${PER_SERVICE}; delete some.` });
  }

  async #find(name: string): Promise<Schedule | undefined> {
    const [found] = await this.#ctx.db.sql<Schedule[]>`select * from (${this.#shown()}) as shown where name = ${name}`;
    return found;
  }

  /** A schedule with its last firing, as everybody sees it; a part of other statements. */
  #shown(): unknown {
    return this.#ctx.db.sql`
      select s.name, s.service, s.cron, s.timezone, s.env_id, jsonb_build_object('service', s.service, 'path', s.path) as target,
        case when s.paused then 'paused' else 'active' end as status, case when s.paused then null else s.next_at end as next_at,
        f.fire_at as last_at, f.status as last_status, s.created_at, s.updated_at
      from schedules s left join lateral (
        select fire_at, status from firings where firings.name = s.name order by fire_at desc, fire_id desc limit 1) f on true`;
  }
}

const ownerOf = (caller: Caller): string | null => (caller.kind === 'machine' ? caller.service : null);

function isZone(timezone: string): boolean {
  try {
    return ZONE.test(timezone) && new Intl.DateTimeFormat('en', { timeZone: timezone }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
