import { eventBus } from '@platform/event-bus/contract';
import { as, boot, type BootedHost } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { scheduler } from '../contract/index.ts';
import plugin from '../src/plugin.ts';
import billingPlugin, { DAILY, desk } from './fixtures/billing.ts';

type Host = BootedHost<typeof scheduler>;
/** Two processes of the service on the same stores; the target lives in the first. */
let host: Host;
let second: Host;
beforeAll(async () => {
  host = await boot(plugin, { beside: [{ plugin: billingPlugin }] });
  second = await boot(plugin, { stores: host.stores });
  await align();
});
afterAll(async () => {
  await second?.[Symbol.asyncDispose]();
  await host?.[Symbol.asyncDispose]();
});
beforeEach(() => Object.assign(desk, { fired: [], closed: false }));

const SOON = { timeout: 20_000, interval: 10 };
const billing = as.machine('billing', 'cron:schedules:write');
const operator = as.user('cron:schedules:read', 'cron:schedules:admin');
const put = (name: string, body: object = DAILY, persona = billing) =>
  host.fetch(`/v1/schedules/${name}`, { method: 'PUT', persona, body: JSON.stringify(body) });
const act = (name: string, verb: string, persona = operator) => host.fetch(`/v1/schedules/${name}/${verb}`, { method: 'POST', persona });
const show = (name: string) => host.by(operator).getSchedule({ params: { name } });
const firings = async (name: string) => (await host.by(operator).listFirings({ params: { name } })).items;
const of = (name: string) => desk.fired.filter(({ schedule }) => schedule === name);
const both = (move: (each: Host) => Promise<void>) => Promise.all([host, second].map(move));
/** Nothing is under way or due: what is moved on now takes no lease from a task that runs. */
const busy = async () =>
  (await (await host.sql())`select 1 from work_tasks where state = 'running' or (state = 'waiting' and due_at <= ${host.clock.now()})`)
    .length > 0;
const quiet = () => expect.poll(busy, SOON).toBe(false);
/** Time passes in steps, at the end of each of which what fell due is done. */
const walk = async (steps: number, hosts: readonly Host[] = [host, second]) => {
  for (let step = 0; step < steps; step++) {
    await Promise.all(hosts.map(each => each.clock.advance('10s')));
    await quiet();
  }
};
/** Both processes have one time. */
const align = async () => {
  const ahead = second.clock.now().getTime() - host.clock.now().getTime();
  if (ahead !== 0) await (ahead > 0 ? host : second).clock.leap(`${Math.abs(ahead)}ms`);
};
const DAY = 86_400_000;
/** When this morning's firing is due, as the clock stands. */
const morning = () => Math.floor(host.clock.now().getTime() / DAY) * DAY + 300_000;
/** A minute before the next morning's firing, with all of the night done. */
const nextMorning = async () => {
  const wait = morning() + DAY - 60_000 - host.clock.now().getTime();
  await both(each => each.clock.leap(`${wait}ms`));
  await walk(2);
  return new Date(morning()).toISOString();
};
const YEARLY = { ...DAILY, cron: '0 12 1 1 *' };

describe('firings', () => {
  test('SCH-002 a schedule fires its target at each of its times, once, with two processes at work; the event bus has no schedules that come again', async () => {
    await nextMorning();
    await walk(12);
    desk.fired = [];
    const due: string[] = [];
    for (let day = 1; day <= 3; day++) {
      due.push(await nextMorning());
      await walk(12);
      expect(desk.fired).toHaveLength(day);
    }
    expect(desk.fired).toEqual(
      due.map(fire_at => ({
        schedule: 'billing-daily',
        fire_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        fire_at,
        who: 'cron',
        bound: true,
      })),
    );
    expect(new Set(desk.fired.map(({ fire_id }) => fire_id)).size).toBe(3);
    expect((await firings('billing-daily')).slice(0, 3)).toMatchObject(
      due.toReversed().map(fire_at => ({ fire_at, status: 'done', attempts: 1, http_status: 204, manual: false })),
    );
    // A database that was put back to an earlier state fires the same time under the same id.
    const sql = await host.sql();
    await sql`delete from firings where name = 'billing-daily'`;
    await sql`update schedules set next_at = ${new Date(due[2] as string)} where name = 'billing-daily'`;
    await walk(1);
    expect(desk.fired[3]).toEqual(desk.fired[2]);
    for (const { options } of Object.values(eventBus.routes as Record<string, { options: { body?: { properties?: object } } }>))
      expect(Object.keys(options.body?.properties ?? {}).filter(member => /cron|every|recur|repeat/.test(member))).toEqual([]);
  });

  test('when the process that leads is gone, another one leads within thirty seconds, and what was missed meanwhile comes once', async () => {
    await put('handover', { ...DAILY, cron: '* * * * *' });
    await walk(6);
    const sql = await host.sql();
    const lock = async () => (await sql<{ holder: string; until: string }[]>`select holder, until from leadership`)[0];
    const before = await lock();
    await walk(1, [host]);
    const [leader, other] = (await lock())?.until === before?.until ? [second, host] : [host, second];
    if (leader === host) await walk(1, [second]);
    desk.fired = [];
    // Its process stands still, while the other one goes on.
    await walk(1, [other]);
    expect((await lock())?.holder).toBe(before?.holder);
    await walk(12, [other]);
    expect((await lock())?.holder).not.toBe(before?.holder);
    expect(of('handover').length).toBeGreaterThan(0);
    await walk(12, [leader]);
    await align();
    const times = of('handover').map(({ fire_at }) => fire_at);
    expect(new Set(times).size).toBe(times.length);
    await host.by(operator).deleteSchedule({ params: { name: 'handover' } });
  });

  test('of the times that passed while nobody was there the last one comes, once', async () => {
    await put('missed');
    await nextMorning();
    desk.fired = [];
    await both(each => each.clock.leap('3d'));
    await walk(2);
    expect(of('missed').map(({ fire_at }) => Date.parse(fire_at))).toEqual([morning() - DAY]);
  });

  test('a target that refuses is asked again after 1, 5 and 30 seconds under the same fire_id, then the firing counts as failed', async () => {
    await put('refused', YEARLY);
    desk.closed = true;
    expect((await act('refused', 'run')).status).toBe(200);
    const sql = await host.sql();
    const fireId = (await firings('refused'))[0]?.fire_id as string;
    for (const [tries, pause] of [1, 5, 30].entries()) {
      await expect
        .poll(async () => {
          if (await busy()) return undefined;
          const [firing] = await firings('refused');
          if (firing?.attempts !== tries + 1) await both(each => each.clock.advance('1s'));
          return firing?.attempts;
        }, SOON)
        .toBe(tries + 1);
      const [task] = await sql<
        { pause: number }[]
      >`select round(extract(epoch from due_at - created_at))::int as pause from work_tasks where key = ${fireId} and state = 'waiting'`;
      expect(task?.pause).toBe(pause);
    }
    await expect
      .poll(async () => (await both(each => each.clock.advance('5s')), (await firings('refused'))[0]?.status), SOON)
      .toBe('failed');
    expect(await firings('refused')).toMatchObject([{ attempts: 4, http_status: 503, code: 'target_refused', manual: true }]);
    expect(of('refused').map(({ fire_id }) => fire_id)).toEqual([fireId, fireId, fireId, fireId]);
    expect(await show('refused')).toMatchObject({ last_status: 'failed' });
  });

  test('a process that dies before it wrote what came of a firing posts it again under the same fire_id', async () => {
    await put('again', YEARLY);
    const sql = await host.sql();
    await sql`create function lost() returns trigger language plpgsql as 'begin raise exception ''the process died''; end'`;
    await sql`create trigger lost before update on firings for each row execute function lost()`;
    await act('again', 'run');
    await expect.poll(() => of('again').length, SOON).toBe(1);
    await expect
      .poll(async () => (await sql`select 1 from work_tasks where name = 'fire' and state = 'waiting' and attempts = 1`).length, SOON)
      .toBe(1);
    await sql`drop trigger lost on firings`;
    await expect.poll(async () => (await both(each => each.clock.advance('1s')), (await firings('again'))[0]?.status), SOON).toBe('done');
    const [{ fire_id }] = of('again') as [(typeof desk.fired)[number]];
    expect(of('again').map(each => each.fire_id)).toEqual([fire_id, fire_id]);
  });

  test('the last fifty firings are kept and shown', async () => {
    await put('kept', YEARLY);
    const sql = await host.sql();
    await sql`insert into firings (fire_id, name, fire_at, manual, status)
      select gen_random_uuid(), 'kept', ${host.clock.now()}::timestamptz - n * interval '1 minute', false, 'done'
      from generate_series(1, 55) n`;
    await act('kept', 'run');
    await quiet();
    expect((await sql`select 1 from firings where name = 'kept'`).length).toBe(50);
    expect((await firings('kept')).map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 'done'));
  });
});

describe('schedules', () => {
  test('a name belongs to the service that made it, and the same again changes nothing: a time that was missed meanwhile still comes', async () => {
    const first = await put('mine');
    await both(each => each.clock.leap('2d'));
    const again = await put('mine');
    expect([first.status, again.status, again.json['updated_at']]).toEqual([200, 200, first.json['updated_at']]);
    const shop = as.machine('shop', 'cron:schedules:write');
    const foreign = { ...DAILY, target: { ...DAILY.target, service: 'shop' } };
    expect(await put('mine', foreign, shop)).toMatchObject({ status: 409, json: { code: 'schedule_taken' } });
    expect(await put('theirs', DAILY, shop)).toMatchObject({ status: 403, json: { code: 'target_foreign' } });
    expect((await host.fetch('/v1/schedules/mine', { persona: shop })).status).toBe(404);
    expect((await host.fetch('/v1/schedules/mine', { method: 'DELETE', persona: shop })).status).toBe(404);
    expect((await host.fetch('/v1/schedules', { persona: shop })).json['items']).toEqual([]);
    expect((await put('mine', DAILY, as.machine('billing'))).status).toBe(403);
    expect((await put('mine', DAILY, as.user('cron:schedules:write') as never)).json['code']).toBe('m2m_required');
    const changed = await put('mine', { ...DAILY, cron: '30 2 * * 1-5', timezone: 'Europe/Berlin' });
    expect([changed.json['cron'], Date.parse(changed.json['next_at'] as string) > host.clock.now().getTime()]).toEqual([
      '30 2 * * 1-5',
      true,
    ]);
  });

  test('what cannot be read is a clear 4xx', async () => {
    const code = async (more: object, name = 'odd') => {
      const { status, json } = await put(name, { ...DAILY, ...more });
      return [status, json['code']];
    };
    for (const cron of [
      'every day at noon',
      '* * * * * *',
      '99 * * * *',
      '*/0 * * * *',
      '0 0 30 2 *',
      '2026-01-01T00:00:00',
      '@every 1m x y z',
    ])
      expect([cron, ...(await code({ cron }))]).toEqual([cron, 400, 'cron_invalid']);
    for (const timezone of ['Mars/Base', '+02:00', '../etc', 'a b'])
      expect([timezone, ...(await code({ timezone }))]).toEqual([timezone, 400, 'timezone_unknown']);
    for (const path of ['/v1/invoices', '/v1/internal/../invoices', '/v1/internal/a?b', '//v1/internal/a'])
      expect(await code({ target: { service: 'billing', path } })).toEqual([400, 'validation_failed']);
    for (const more of [{ cron: '5 0 * *\0 *' }, { timezone: 'UTC\0' }, { env_id: 'nowhere' }, { more: 1 }, { cron: '1'.repeat(200) }])
      expect(await code(more)).toEqual([400, 'validation_failed']);
    expect(await code({ timezone: 'x'.repeat(10_000) })).toEqual([413, 'body_too_large']);
    for (const name of ['Odd', 'a_b', '1st', 'x'.repeat(64)])
      expect([name, ...(await code({}, name))]).toEqual([name, 400, 'validation_failed']);
    expect((await host.fetch('/v1/schedules/%00', { persona: operator })).status).toBe(400);
    expect((await host.fetch('/v1/schedules/odd', { persona: operator })).json['code']).toBe('schedule_not_found');
    const sql = await host.sql();
    const now = new Date();
    await sql`insert into schedules (name, service, env_id, cron, timezone, path, created_at, updated_at)
      select 'many-' || n, 'many', ${DAILY.env_id}, '5 0 * * *', 'UTC', '/v1/internal/a', ${now}, ${now} from generate_series(1, 200) n`;
    const many = as.machine('many', 'cron:schedules:write');
    expect(await put('many-201', { ...DAILY, target: { service: 'many', path: '/v1/internal/a' } }, many)).toMatchObject({
      status: 409,
      json: { code: 'too_many_schedules' },
    });
    await sql`delete from schedules where service = 'many'`;
  });

  test('operators let a schedule rest, go on and run at once; what passed while it rested does not come', async () => {
    await put('resting');
    await nextMorning();
    desk.fired = [];
    expect((await act('resting', 'pause', as.user('cron:schedules:read'))).status).toBe(403);
    expect(await act('resting', 'pause')).toMatchObject({ status: 200, json: { status: 'paused', next_at: null } });
    await walk(8);
    expect(await act('resting', 'resume')).toMatchObject({
      status: 200,
      json: { status: 'active', next_at: new Date(morning() + DAY).toISOString() },
    });
    await walk(2);
    expect(of('resting')).toEqual([]);
    const page = await host.fetch(`/v1/admin/schedules/resting/runSchedule?target_env_id=${DAILY.env_id}`, {
      method: 'POST',
      persona: operator,
    });
    expect(page.status).toBe(200);
    await expect.poll(() => of('resting').length, SOON).toBe(1);
    await expect
      .poll(() => host.audits.map(({ action }) => action), SOON)
      .toEqual(expect.arrayContaining(['cron.schedule.paused', 'cron.schedule.resumed', 'cron.schedule.run']));
    expect((await host.by(operator).listSchedules({ query: { service: 'billing', status: 'active', limit: 1 } })).items).toHaveLength(1);
    await host.by(billing).deleteSchedule({ params: { name: 'resting' } });
    expect((await host.fetch('/v1/schedules/resting', { persona: operator })).status).toBe(404);
  });

  test('schedules of a deleted environment go with it, after it was said how many there are', async () => {
    const env_id = '01900000-0000-7000-8000-0000000000c1';
    await put('of-an-environment', { ...DAILY, env_id });
    const sys = await host.workload('sys');
    const ask = (what: string) =>
      host.fetch(`/v1/internal/environments/${what}`, { method: 'POST', as: sys, body: JSON.stringify({ env_ids: [env_id] }) });
    expect((await ask('counts')).json).toEqual({ counts: { schedules: 1 } });
    expect((await ask('purge')).json).toEqual({ counts: { schedules: 1 } });
    expect((await host.fetch('/v1/schedules/of-an-environment', { persona: operator })).status).toBe(404);
  });
});
