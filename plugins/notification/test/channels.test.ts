import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { as, eventually, newId } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Logger } from '@platform/sdk';
import type { GatewaySettings, Outgoing } from '../src/adapters/adapter.ts';
import { stub } from '../src/adapters/stub.ts';
import { MailServer } from './fixtures/mail-server.ts';
import { RelayServer } from './fixtures/relay-server.ts';
import { World } from './fixtures/world.ts';

let world: World;
let mail: MailServer;
let relay: RelayServer;
beforeAll(async () => {
  [world, mail, relay] = await Promise.all([World.start(), MailServer.open(), RelayServer.open()]);
});
afterAll(async () => {
  await Promise.all([mail[Symbol.asyncDispose](), relay[Symbol.asyncDispose]()]);
  await world[Symbol.asyncDispose]();
});

let people = 0;
const somebody = () => `person${++people}@example.org`;
const smtp = (envId: string, more = {}) =>
  world.gateway(envId, { gateway_url: `smtp://127.0.0.1:${mail.port}`, config: { from: 'Shop <shop@example.com>' }, ...more });
const mailTo = (env_id: string, email: string, more = {}) =>
  world.send({ env_id, recipient: { user_id: 'somebody', email }, channels: ['email'], ...more });

describe('channels', () => {
  test('NTF-005 NTF-022 NTF-032 NTF-036 NTF-038 those without a provider go through the same seam beside the inbox, and fail as their gateway says', async () => {
    const env_id = world.env();
    const stubbed = ['sms', 'push', 'web_push', 'mail'] as const;
    const posted = relay.posted.length;
    for (const channel of stubbed) {
      const { gateway_id } = await world.gateway(env_id, { channel, name: channel, gateway_url: relay.url });
      const by = world.host.by(world.admin(env_id));
      expect(await by.testGateway({ targetEnvId: env_id, body: { gateway_id, recipient: 'somebody' } })).toMatchObject({
        ok: true,
        adapter: `stub-${channel}`,
      });
    }
    world.devices.set('u', [
      { platform: 'ios', device_token: 't-1' },
      { platform: 'web', device_token: 't-2' },
    ]);
    const recipient = { user_id: 'u', phone: '+4912345', address: 'A Street 1' };
    const id = await world.send({ env_id, recipient, channels: ['sms', 'push', 'web_push', 'mail'] });
    for (const channel of ['view', ...stubbed]) await world.reaches(id, 'delivered', channel);
    // Whatever address they have, nothing of theirs goes anywhere.
    expect(relay.posted).toHaveLength(posted);
    const rows = await world.sql<{ channel: string }[]>`select channel from deliveries where notification_id = ${id} order by channel`;
    expect(rows.map(({ channel }) => channel)).toEqual(['mail', 'push', 'sms', 'view', 'web_push']);
    await expect(world.send({ env_id, recipient, channels: ['fax' as never] })).rejects.toMatchObject({ status: 400 });
    const failing = world.env();
    await world.gateway(failing, { channel: 'sms', config: { simulate_failure: { mode: 'always', error: 'no signal' } } });
    const failed = await world.send({ env_id: failing, recipient, channels: ['sms'] });
    expect((await world.tried(failed, 1, 'sms')).last_error).toBe('no signal');
  });

  test('push goes to the devices of the person that the channel reaches, and their tokens are nowhere kept', async () => {
    const env_id = world.env();
    const push = await world.gateway(env_id, { channel: 'push', name: 'Pushes' });
    await world.gateway(env_id, { channel: 'web_push', name: 'Web pushes' });
    const [user_id, nobody] = [newId(), newId()];
    world.devices.set(user_id, [
      { platform: 'ios', device_token: 'secret-one' },
      { platform: 'ios', device_token: 'secret-two' },
      { platform: 'android', device_token: 'secret-three' },
    ]);
    const id = await world.send({ env_id, recipient: { user_id }, channels: ['push', 'web_push'] });
    expect((await world.reaches(id, 'delivered', 'push')).why).toBe('taken by the gateway Pushes for devices: android 1, ios 2');
    const { channels } = await world.host
      .by(world.admin(env_id))
      .explainMessage({ targetEnvId: env_id, params: { notification_id: (await world.reaches(id, 'suppressed', 'web_push'), id) } });
    expect(channels.find(({ channel }) => channel === 'web_push')?.why).toBe(
      'no device: the person has none for web_push in a session that lives',
    );
    for (const recipient of [{ user_id: nobody }, { user_id: 'email:invited@example.org' }])
      expect((await world.reaches(await world.send({ env_id, recipient, channels: ['push'] }), 'suppressed', 'push')).why).toContain(
        'no device',
      );
    // While the gateway is away nobody knows whether there are devices: it is tried again.
    world.devices.away = true;
    const later = await world.send({ env_id, recipient: { user_id }, channels: ['push'] });
    expect(await world.tried(later, 1, 'push')).toMatchObject({
      state: 'pending',
      last_error: 'the devices of the person could not be asked for',
    });
    world.devices.away = false;
    await world.host.clock.advance('1s');
    await world.reaches(later, 'delivered', 'push');
    const [kept] = await world.sql<
      { text: string }[]
    >`select (select jsonb_agg(d)::text from deliveries d) || (select jsonb_agg(m)::text from messages m) as text`;
    expect([kept?.text.includes('secret-'), kept?.text.includes(push.gateway_id)]).toEqual([false, true]);
    const logs = join(world.stores.dataDir, 'logs');
    for (const file of readdirSync(logs)) expect(readFileSync(join(logs, file), 'utf8')).not.toContain('secret-');
    const said: unknown[] = [];
    const devices = (world.devices.get(user_id) ?? []).map(({ platform, device_token: token }) => ({ platform, token }));
    await stub('push', { info: (fields: object) => said.push(fields) } as unknown as Logger).dispatch(
      { deliveryId: id, devices } as unknown as Outgoing,
      {} as GatewaySettings,
      undefined,
      new AbortController().signal,
    );
    expect(said).toEqual([{ channel: 'push', delivery_id: id, devices: 'android 1, ios 2' }]);
  });

  test('NTF-037 the first enabled gateway is taken: of the environment, of its organization, of the platform', async () => {
    const [env_id, org_id] = [world.env(), newId()];
    world.orgs.set(env_id, org_id);
    const chosen = async () => {
      const id = await world.send({ env_id, recipient: { user_id: 'u', phone: '1' }, channels: ['sms'] });
      await world.reaches(id, 'delivered', 'sms');
      return (
        await world.host.by(world.admin(env_id)).explainMessage({ targetEnvId: env_id, params: { notification_id: id } })
      ).channels.find(({ channel }) => channel === 'sms')?.gateway;
    };
    const platform = await world.gateway(env_id, { channel: 'sms', name: 'of the platform', scope: 'sys' });
    expect(await chosen()).toBe('of the platform');
    // However many other organizations have theirs.
    await world.sql`
      insert into gateways (gateway_id, scope, org_id, channel, name, config, enabled, private_ok, version, created_at, updated_at)
      select gen_random_uuid(), 'org', gen_random_uuid(), 'sms', 'of another', '{}', true, false, 1, '2020-01-01', '2020-01-01'
        from generate_series(1, 600)`;
    await world.gateway(env_id, { channel: 'sms', name: 'of the organization', scope: 'org' });
    expect(await chosen()).toBe('of the organization');
    await world.sql`delete from gateways where name = 'of another'`;
    const own = await world.gateway(env_id, { channel: 'sms', name: 'of the environment' });
    expect(await chosen()).toBe('of the environment');
    await world.host
      .by(world.admin(env_id))
      .updateGateway({ targetEnvId: env_id, params: { gateway_id: own.gateway_id }, body: { enabled: false } });
    expect(await chosen()).toBe('of the organization');
    await world.host.by(world.platformAdmin()).deleteGateway({ targetEnvId: env_id, params: { gateway_id: platform.gateway_id } });
  });

  test('NTF-027 NTF-028 NTF-029 NTF-040 H-28 muted categories and quiet hours keep messages from going out, never from the inbox, and it is said why', async () => {
    const env_id = world.env();
    const user = as.userIn(env_id, 'post:read', 'post:write');
    await smtp(env_id);
    const prefer = (body: object) =>
      world.host.by(user).putPreferences({ body: { muted_categories: [], quiet_hours: [], ...body } as never });
    const send = async (category: string) =>
      world.send({ env_id, category, recipient: { user_id: user.id, email: somebody() }, channels: ['email'] });
    expect(await world.host.by(user).getPreferences()).toEqual({ muted_categories: [], quiet_hours: [], timezone: null });
    await prefer({ muted_categories: ['marketing'] });
    // They are this person's alone.
    expect((await world.host.by(as.userIn(env_id, 'post:read')).getPreferences()).muted_categories).toEqual([]);
    const muted = await send('marketing');
    expect((await world.reaches(muted, 'suppressed')).why).toContain('muted');
    expect((await world.delivery(muted, 'view'))?.state).toBe('delivered');
    await world.reaches(await send('security'), 'delivered');
    const hour = world.host.clock.now().getUTCHours();
    await prefer({ quiet_hours: [{ start_hour: hour, end_hour: (hour + 1) % 24 }] });
    const quiet = await send('security');
    expect((await world.reaches(quiet, 'suppressed')).why).toContain('quiet hour');
    expect((await world.delivery(quiet, 'view'))?.state).toBe('delivered');
    const kept = { muted_categories: [], quiet_hours: [{ start_hour: hour, end_hour: (hour + 1) % 24 }] };
    expect(await world.host.by(user).getPreferences()).toMatchObject(kept);
    // The same hours on a clock that is eleven hours ahead are not now.
    await prefer({ quiet_hours: [{ start_hour: hour, end_hour: (hour + 1) % 24 }], timezone: 'Pacific/Noumea' });
    await world.reaches(await send('security'), 'delivered');
    await expect(prefer({ timezone: 'Mars/Olympus' })).rejects.toMatchObject({ status: 400, code: 'timezone_unknown' });
  });

  test('what has expired is not sent any more', async () => {
    const env_id = world.env();
    await smtp(env_id);
    const id = await mailTo(env_id, somebody(), { expires_at: new Date(world.host.clock.now().getTime() - 1_000).toISOString() });
    expect((await world.reaches(id, 'suppressed')).why).toContain('expired');
  });
});

describe('marketing mail', () => {
  test('can be ended by its link: GET shows, POST in one click mutes the category', async () => {
    const env_id = world.env();
    const user = as.userIn(env_id, 'post:read', 'post:write');
    await smtp(env_id);
    const to = somebody();
    const send = () => world.send({ env_id, category: 'marketing', recipient: { user_id: user.id, email: to }, channels: ['email'] });
    await world.reaches(await send(), 'delivered');
    const headers = mail.to(to)[0]?.mail.headers;
    const list = headers?.get('list') as unknown as { unsubscribe: { url: string }; 'unsubscribe-post': { name: string } };
    expect(list['unsubscribe-post']).toEqual({ name: 'List-Unsubscribe=One-Click' });
    const link = new URL(list.unsubscribe.url);
    expect(link.origin).toBe('https://post.ops.sys.localhost:8443');
    const shown = await world.host.fetch(link.pathname);
    expect([shown.status, shown.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect((await world.host.by(user).getPreferences()).muted_categories).toEqual([]);
    const posted = await world.host.fetch(link.pathname, {
      method: 'POST',
      body: 'List-Unsubscribe=One-Click',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect(posted.status).toBe(200);
    expect((await world.host.by(user).getPreferences()).muted_categories).toEqual(['marketing']);
    await world.reaches(await send(), 'suppressed');
    expect((await world.host.fetch(`${link.pathname}x`, { method: 'POST', body: '' })).status).toBe(404);
  });
});

describe('development', () => {
  test('F-50 a mail without a gateway is in the mailbox, with its links; nothing is when there is a gateway', async () => {
    const [env_id, to] = [world.env(), somebody()];
    const id = await mailTo(env_id, to, { body: 'Join:\nhttps://console.example/#/bootstrap?org=1&invitation=abc' });
    expect((await world.reaches(id, 'delivered')).why).toContain('mailbox');
    const by = world.host.by(as.user('post:mailbox:read'));
    const { items } = await by.listMailbox({ query: { to } });
    expect(items).toMatchObject([
      {
        to,
        subject: 'Hello',
        links: ['https://console.example/#/bootstrap?org=1&invitation=abc'],
        headers: { To: to, 'Message-ID': expect.any(String) },
      },
    ]);
    expect(await by.getMail({ params: { mail_id: items[0]?.mail_id as string } })).toEqual(items[0]);
    await smtp(env_id);
    await world.reaches(await mailTo(env_id, to), 'delivered');
    expect((await by.listMailbox({ query: { to } })).items).toHaveLength(1);
    await by.deleteMail({ params: { mail_id: items[0]?.mail_id as string } });
    await expect(by.getMail({ params: { mail_id: items[0]?.mail_id as string } })).rejects.toMatchObject({ status: 404 });
    await expect(world.host.by(world.admin(env_id)).listMailbox()).rejects.toMatchObject({ status: 403 });
  });

  test('other channels without a gateway say so', async () => {
    const id = await world.send({ env_id: world.env(), channels: ['push'] });
    expect((await world.reaches(id, 'no_gateway', 'push')).why).toContain('no gateway for push');
  });
});

describe('a provider that hangs', () => {
  test('H-26 keeps neither other channels nor other environments waiting', async () => {
    const [hung, fine] = [world.env(), world.env()];
    const hanging = await RelayServer.open();
    hanging.answer = () => undefined;
    await world.gateway(hung, { gateway_url: hanging.url, config: { from: 'a@example.com' } });
    await world.gateway(hung, { channel: 'sms', name: 'sms' });
    await smtp(fine);
    const stuck = [];
    for (let n = 0; n < 24; n++) stuck.push(await mailTo(hung, somebody()));
    await eventually(() => hanging.posted.length).toBeGreaterThan(0);
    const [other, sms] = [
      await mailTo(fine, somebody()),
      await world.send({ env_id: hung, recipient: { user_id: 'u', phone: '1' }, channels: ['sms'] }),
    ];
    await world.reaches(other, 'delivered');
    await world.reaches(sms, 'delivered', 'sms');
    expect(hanging.posted.length).toBeLessThanOrEqual(8);
    await hanging[Symbol.asyncDispose]();
    // Those in its hands fail; the rest is not even tried for a while.
    for (const id of stuck) await world.tried(id, 1);
    expect(hanging.posted.length).toBeLessThan(24);
  });
});
