import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { as, eventually, newId, type Persona, SealedBox } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contentPurpose } from '../src/messages/content.ts';
import { MailServer } from './fixtures/mail-server.ts';
import { World } from './fixtures/world.ts';

let world: World;
let mail: MailServer;
beforeAll(async () => {
  [world, mail] = await Promise.all([World.start(), MailServer.open()]);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await mail[Symbol.asyncDispose]();
});
const draft = (more = {}) => ({ name: 'Main', channel: 'email' as const, ...more });

describe('gateways', () => {
  test('NTF-015 hold references alone: a literal credential is refused, in the address too, and so is a reference to what belongs to others', async () => {
    const env_id = world.env();
    const [platform, admin] = [world.host.by(world.platformAdmin()), world.host.by(world.admin(env_id))];
    const create = (by: typeof admin, more: object) => by.createGateway({ targetEnvId: env_id, body: draft(more) });
    for (const credentials of [{ password: 'x' }, { secret_ref: 'env://A', password: 'x' }, { secret_ref: 'hunter2' }, { secret_ref: 7 }])
      await expect(create(platform, { credentials })).rejects.toMatchObject({ status: 400, code: 'literal_credential' });
    await expect(create(platform, { gateway_url: 'smtp://user:secret@mail.example' })).rejects.toMatchObject({
      status: 400,
      code: 'literal_credential',
    });
    for (const secret_ref of [
      'env://HOME',
      'file:///run/platform/secrets/db',
      'secrets://other/thing',
      `secrets://env/${newId()}/smtp`,
      `secrets://env/${env_id}/../x`,
    ])
      await expect(create(admin, { credentials: { secret_ref } })).rejects.toMatchObject({ status: 403, code: 'credential_reserved' });
    expect((await create(admin, { credentials: { secret_ref: `secrets://env/${env_id}/smtp` } })).credentials).toEqual({
      secret_ref: `secrets://env/${env_id}/smtp`,
    });
    const stored = await world.sql<{ secret_ref: string }[]>`select secret_ref from gateways where env_id = ${env_id}`;
    expect([...stored]).toEqual([{ secret_ref: `secrets://env/${env_id}/smtp` }]);
  });

  test('have addresses that may be reached', async () => {
    const env_id = world.env();
    const create = (gateway_url: string, more = {}) =>
      world.host.by(world.admin(env_id)).createGateway({ targetEnvId: env_id, body: draft({ gateway_url, ...more }) });
    for (const url of ['ftp://x.example', 'nonsense', 'http://relay.example/send', 'smtp://'])
      await expect(create(url)).rejects.toMatchObject({ status: 400, code: 'gateway_url_invalid' });
    await expect(create('smtp://mail.example', { channel: 'sms' })).rejects.toMatchObject({ status: 400, code: 'gateway_url_invalid' });
    await expect(create('smtp://mail.example', { config: { from: 'a@b.example, c@d.example' } })).rejects.toMatchObject({
      status: 400,
      code: 'gateway_invalid',
    });
    for (const url of ['https://relay.example/send', 'smtp://mail.example:587', 'smtps://mail.example', 'http://127.0.0.1:9/send'])
      expect((await create(url)).gateway_url).toBe(url);
  });

  test('NTF-051 of the platform and of organizations are changed by administrators of the platform alone', async () => {
    const [env_id, org_id] = [world.env(), newId()];
    world.orgs.set(env_id, org_id);
    const [admin, platform] = [world.host.by(world.admin(env_id)), world.host.by(world.platformAdmin())];
    for (const scope of ['sys', 'org'] as const) {
      await expect(admin.createGateway({ targetEnvId: env_id, body: draft({ scope }) })).rejects.toMatchObject({
        status: 403,
        code: 'platform_admin_required',
      });
      const made = await platform.createGateway({ targetEnvId: env_id, body: draft({ scope, channel: 'sms' }) });
      expect([made.scope, made.org_id, made.env_id]).toEqual([scope, scope === 'org' ? org_id : null, null]);
      const at = { targetEnvId: env_id, params: { gateway_id: made.gateway_id } };
      await expect(admin.updateGateway({ ...at, body: { enabled: false } })).rejects.toMatchObject({ status: 403 });
      await expect(admin.deleteGateway(at)).rejects.toMatchObject({ status: 403 });
      expect((await admin.listGateways({ targetEnvId: env_id })).items.map(({ gateway_id }) => gateway_id)).toContain(made.gateway_id);
      await platform.deleteGateway(at);
    }
    // Without the word of the registry nobody knows whose organization it would be.
    await expect(platform.createGateway({ targetEnvId: world.env(), body: draft({ scope: 'org' }) })).rejects.toMatchObject({
      status: 503,
      code: 'org_unknown',
    });
  });

  test('NTF-037 NTF-050 G-K-03 are made, changed and removed under their version, and listed; those of others are not there', async () => {
    const [env_id, elsewhere] = [world.env(), world.env()];
    const admin = world.host.by(world.admin(env_id));
    const bare = await admin.createGateway({ targetEnvId: env_id, body: draft() });
    expect(bare).toMatchObject({ scope: 'env', channel: 'email', gateway_url: null, credentials: null, config: {} });
    await admin.deleteGateway({ targetEnvId: env_id, params: { gateway_id: bare.gateway_id } });
    const whole = {
      ...draft({ gateway_url: 'https://relay.example/send', credentials: { secret_ref: `secrets://env/${env_id}/smtp` } }),
      config: { from: 'a@b.example', simulate_failure: { mode: 'first_n' as const, n: 2, error: 'not now' } },
    };
    const made = await admin.createGateway({ targetEnvId: env_id, body: whole });
    expect(made).toMatchObject({ ...whole, scope: 'env', env_id });
    const at = { targetEnvId: env_id, params: { gateway_id: made.gateway_id } };
    const changed = await admin.updateGateway({ ...at, body: { name: 'Other' } });
    expect([changed.name, changed.version, changed.config]).toEqual(['Other', 2, whole.config]);
    const stale = await world.host.fetch(`/v1/gateways/${made.gateway_id}?target_env_id=${env_id}`, {
      method: 'PUT',
      persona: world.admin(env_id),
      body: '{"name":"X"}',
      headers: { 'if-match': '"1"' },
    });
    expect(stale.status).toBe(412);
    const staleRemoval = await world.host.fetch(`/v1/gateways/${made.gateway_id}?target_env_id=${env_id}`, {
      method: 'DELETE',
      persona: world.admin(env_id),
      headers: { 'if-match': '"1"' },
    });
    expect([staleRemoval.status, (await admin.getGateway(at)).version]).toEqual([412, 2]);
    await expect(world.host.by(world.admin(elsewhere)).getGateway({ targetEnvId: elsewhere, params: at.params })).rejects.toMatchObject({
      status: 404,
    });
    await admin.deleteGateway(at);
    await expect(admin.getGateway(at)).rejects.toMatchObject({ status: 404, code: 'gateway_not_found' });
  });

  test('NTF-049 are tried through the same seam: kept ones and drafts, and a refusal of the provider is an answer', async () => {
    const env_id = world.env();
    const by = world.host.by(world.platformAdmin());
    const gateway = draft({ gateway_url: `smtp://127.0.0.1:${mail.port}`, config: { from: 'a@b.example' } });
    const tried = (body: object) => by.testGateway({ targetEnvId: env_id, body: { recipient: 'me@example.org', ...body } as never });
    expect(await tried({ gateway })).toMatchObject({ ok: true, adapter: 'smtp' });
    expect(mail.to('me@example.org')[0]?.mail.subject).toBe('Test');
    const made = await by.createGateway({
      targetEnvId: env_id,
      body: { ...gateway, config: { simulate_failure: { mode: 'always', error: 'as asked' } } },
    });
    expect(await tried({ gateway_id: made.gateway_id })).toMatchObject({ ok: false, adapter: 'smtp', error: 'as asked' });
    expect(await tried({ gateway: draft({ gateway_url: 'http://127.0.0.1:9/send' }) })).toMatchObject({
      ok: false,
      adapter: 'http-relay',
      error: expect.stringContaining('could not be reached'),
    });
    expect(
      await by.tryGateway({ targetEnvId: env_id, params: { gateway_id: made.gateway_id }, body: { recipient: 'me@example.org' } }),
    ).toMatchObject({ ok: false });
    await expect(tried({})).rejects.toMatchObject({ status: 400, code: 'gateway_invalid' });
    const path = `/v1/gateways/test?target_env_id=${env_id}`;
    const body = JSON.stringify({ gateway_id: made.gateway_id, recipient: 'me@example.org' });
    const posted = (persona: Persona) => world.host.fetch(path, { method: 'POST', persona, body });
    expect([(await posted(world.admin(env_id))).status, (await posted(as.userIn(env_id, 'post:read', 'post:write'))).status]).toEqual([
      200, 403,
    ]);
    await expect(tried({ gateway, recipient: 'a@b.example, c@d.example' })).rejects.toMatchObject({
      status: 400,
      code: 'recipient_invalid',
    });
  });
});

describe('administration', () => {
  test('NTF-052 NTF-053 NTF-054 every administrative call, those of the pages too, without target_env_id is 400', async () => {
    const persona = world.platformAdmin();
    for (const path of [
      '/v1/gateways',
      '/v1/templates',
      '/v1/dead-letters',
      '/v1/suppressions',
      '/v1/message-log',
      '/v1/admin/messages',
      '/v1/admin/relations',
      '/v1/admin/attributes',
      '/v1/admin/policy-sets',
      '/v1/admin/decisions',
    ]) {
      const answer = await world.host.fetch(path, { persona: { ...persona, scopes: [...persona.scopes, 'post:policy:admin'] } });
      expect([path, answer.status, answer.json['code']]).toEqual([path, 400, 'target_env_required']);
    }
  });

  test('NTF-052 NTF-053 NTF-055 pages are described for who may see them, and policy is administered with policy actions alone', async () => {
    const env_id = world.env();
    const persona = as.userIn(env_id, 'post:read', 'post:write', 'post:admin', 'post:policy:admin');
    const target = `?target_env_id=${env_id}`;
    const documented = ['messages', 'gateways/new', 'dead-letters', 'relations', 'attributes'];
    for (const page of [...documented, 'gateways', 'templates', 'suppressions', 'preferences', 'policy']) {
      const { status, json } = await world.host.fetch(`/v1/admin/ui/${page}${target}`, { persona });
      expect([page, status, json['schema']]).toEqual([page, 200, 'platform.admin-ui/1']);
    }
    const shown = async (page: string) => (await world.host.fetch(`/v1/admin/ui/${page}${target}`, { persona })).json;
    const policy = JSON.stringify(await shown('policy'));
    for (const label of ['Relations', 'Attributes', 'Policy sets', 'Decisions']) expect(policy).toContain(label);
    for (const page of ['relations', 'attributes'])
      expect((await shown(page))['sections']).toMatchObject([{ kind: 'actions' }, { kind: 'table', source: { resource: page } }]);
    for (const kind of ['relations', 'attributes', 'policy-sets', 'decisions']) {
      expect([kind, (await world.host.fetch(`/v1/admin/${kind}${target}`, { persona })).status]).toEqual([kind, 200]);
      expect([kind, (await world.host.fetch(`/v1/admin/${kind}${target}`, { persona: world.admin(env_id) })).status]).toEqual([kind, 403]);
    }
  });

  test('a message is explained: what each channel did, why, by which gateway and after which tries, with the correlation to the change', async () => {
    const env_id = world.env();
    const admin = world.host.by(world.admin(env_id));
    await world.gateway(env_id, {
      channel: 'sms',
      name: 'Texts',
      config: { simulate_failure: { mode: 'first_n', n: 1, error: 'no signal' } },
    });
    const id = await world.send({
      env_id,
      recipient: { user_id: 'u', phone: '1' },
      channels: ['sms', 'push'],
      correlation_id: 'change-1',
      template: { key: 'no.such' },
      subject: 'S',
      body: 'b',
    });
    await world.tried(id, 1, 'sms');
    await world.host.clock.advance('1s');
    await world.reaches(id, 'delivered', 'sms');
    await world.reaches(id, 'no_gateway', 'push');
    const explained = await admin.explainMessage({ targetEnvId: env_id, params: { notification_id: id } });
    expect(explained).toMatchObject({
      correlation_id: 'change-1',
      rendering: { template_key: 'no.such', rendered_from: 'literal', why: expect.stringContaining('no template no.such') },
    });
    expect(explained.channels).toMatchObject([
      { channel: 'view', state: 'delivered', why: 'the inbox always gets it' },
      { channel: 'push', state: 'no_gateway', why: expect.stringContaining('no gateway') },
      { channel: 'sms', state: 'delivered', gateway: 'Texts', why: 'taken by the gateway Texts', attempts: [{ reason: 'no signal' }] },
    ]);
    const search = async (query: object) =>
      (await admin.searchMessages({ targetEnvId: env_id, query })).items.map(({ notification_id }) => notification_id);
    expect([
      await search({ correlation_id: 'change-1' }),
      await search({ channel: 'push', state: 'no_gateway' }),
      await search({ state: 'dead_lettered' }),
      await search({ user_id: 'nobody' }),
    ]).toEqual([[id], [id], [], []]);
    await expect(
      world.host.by(world.admin(world.env())).explainMessage({ targetEnvId: world.env(), params: { notification_id: id } }),
    ).rejects.toMatchObject({ status: expect.any(Number) });
  });

  test('messages of an environment are sorted by when they were sent, either way, page after page', async () => {
    const env_id = world.env();
    const admin = world.host.by(world.admin(env_id));
    const search = (query: object) => admin.searchMessages({ targetEnvId: env_id, query: { limit: 2, ...query } });
    // Two of one moment, and one after them.
    const together = [await world.send({ env_id }), await world.send({ env_id })];
    for (const id of together) await world.shown(id);
    await world.host.clock.advance('1s');
    const ids = [...together.toSorted(), await world.send({ env_id })];
    const sorted = async (order?: 'asc' | 'desc') => {
      const seen: string[] = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await search({ ...(order ? { sort: 'created_at', order } : {}), ...(cursor ? { cursor } : {}) });
        seen.push(...page.items.map(({ notification_id }) => notification_id));
        cursor = page.next_cursor;
      }
      return seen;
    };
    expect([await sorted('asc'), await sorted('desc'), await sorted()]).toEqual([ids, ids.toReversed(), ids.toReversed()]);
    const { next_cursor: cursor } = await search({ sort: 'created_at' });
    await expect(search({ sort: 'created_at', order: 'desc', cursor })).rejects.toMatchObject({ status: 400, code: 'invalid_cursor' });
    await expect(search({ sort: 'title' })).rejects.toMatchObject({ status: 400, code: 'validation_failed' });
  });

  test('NTF-061 NTF-063 NTF-064 its paths are under /v1, its events are named with colons, carry everything, and its health says the build', async () => {
    for (const name of Object.keys(world.host.manifest.events)) expect(name).toMatch(/^[a-z0-9_-]+(:[a-z0-9_-]+){2,3}$/);
    const paths = Object.keys((await world.host.fetch('/openapi.json')).json['paths'] as object);
    expect(paths.length).toBeGreaterThan(20);
    expect(paths.filter(path => !path.startsWith('/v1/') && !path.startsWith('/openapi') && path !== '/subscribe')).toEqual([]);
    const { json } = await world.host.fetch('/v1/health');
    expect(json).toMatchObject({ service: 'post', build: 'test', version: expect.stringContaining('test') });
  });

  test('NTF-030 NTF-031 NTF-018 keeps messages and what they need alone: no policies, no changes of producers, no secrets', async () => {
    const tables = await world.sql<
      { name: string }[]
    >`select table_name as name from information_schema.tables where table_schema = current_schema() order by 1`;
    const kernels = [
      'audit_marks',
      'consumer_leads',
      'idempotent_answers',
      'inbox',
      'outbox',
      'schema_migrations',
      'service_keys',
      'work_jobs',
      'work_tasks',
    ];
    expect(tables.map(({ name }) => name).filter(name => !kernels.includes(name))).toEqual([
      'dead_letters',
      'deliveries',
      'gateways',
      'mailbox',
      'messages',
      'preferences',
      'suppressions',
      'templates',
    ]);
    const columns = await world.sql<
      { name: string }[]
    >`select column_name as name from information_schema.columns where table_schema = current_schema() and table_name = 'gateways'`;
    expect(columns.map(({ name }) => name).filter(name => /secret|password|token|credential/.test(name))).toEqual(['secret_ref']);
  });
});

describe('upkeep', () => {
  test('G-POST-08 messages are kept 180 days, deliveries 90', async () => {
    const env_id = world.env();
    const ids = [await world.send({ env_id }), await world.send({ env_id }), await world.send({ env_id })];
    for (const id of ids) await world.shown(id);
    const age = (table: 'messages' | 'deliveries', id: string, days: number) =>
      table === 'messages'
        ? world.sql`update messages set created_at = ${new Date(world.host.clock.now().getTime() - days * 86_400_000).toISOString()}
          where notification_id = ${id}`
        : world.sql`update deliveries set created_at = ${new Date(world.host.clock.now().getTime() - days * 86_400_000).toISOString()}
          where notification_id = ${id}`;
    await age('messages', ids[0] as string, 181);
    await age('messages', ids[1] as string, 179);
    await age('deliveries', ids[1] as string, 91);
    await world.host.clock.advance('61m');
    const left = await world.sql<{ notification_id: string; deliveries: number }[]>`
      select m.notification_id, count(d.delivery_id)::int as deliveries from messages m left join deliveries d using (notification_id)
        where m.env_id = ${env_id} group by m.notification_id order by m.notification_id`;
    expect([...left]).toEqual([
      { notification_id: ids[1], deliveries: 0 },
      { notification_id: ids[2], deliveries: 1 },
    ]);
  });

  test('a delivery whose task was lost is queued anew', async () => {
    const env_id = world.env();
    const id = await world.send({ env_id, recipient: { user_id: 'u', email: 'lost@example.org' }, channels: ['email'] });
    await world.reaches(id, 'delivered');
    await world.sql`update deliveries set state = 'pending',
      next_attempt_at = ${new Date(world.host.clock.now().getTime() - 3_600_000).toISOString()} where notification_id = ${id}
      and channel = 'email'`;
    await world.host.clock.advance('61s');
    await world.reaches(id, 'delivered');
  });
});

describe('a change of the key', () => {
  test('what messages say is read with the key of before, sealed anew within minutes, and then the new one stands alone', async () => {
    const env_id = world.env();
    const reader = as.userIn(env_id, 'post:read');
    const first = await world.send({
      env_id,
      recipient: { user_id: reader.id, email: 'sealed@example.org' },
      channels: ['email'],
      body: 'Said before the change.',
    });
    await world.reaches(first, 'delivered');
    await world.shown(first);
    // More than two batches, and one under somebody else's seal.
    const before = new SealedBox([Buffer.from(readFileSync(join(world.stores.dataDir, 'test.post.key'), 'utf8'), 'base64')]);
    const many = Array.from({ length: 250 }, () => newId()).map((id, index) => ({
      id,
      content: before.seal(index === 0 ? 'of somebody else' : contentPurpose(id), '{"recipient":{}}'),
    }));
    await world.sql`
      insert into messages (notification_id, env_id, user_id, stream_family, category, priority, content, channels, resource_refs,
        correlation_id, confidential, created_at, delivered_at)
      select row.id, env_id, user_id, stream_family, category, priority, row.content, '{}', '[]', correlation_id, false, created_at, now()
      from messages, jsonb_to_recordset(${world.sql.json(many as never)}) as row(id uuid, content jsonb) where notification_id = ${first}`;
    const under = async (kid: string) =>
      (
        await world.sql<
          { id: string }[]
        >`select notification_id as id from messages where content ->> 'kid' = ${kid} union all select mail_id from mailbox
          where mail ->> 'kid' = ${kid}`
      ).map(({ id }) => id);
    const path = join(world.stores.dataDir, 'next.post.key');
    writeFileSync(path, randomBytes(32).toString('base64'), { mode: 0o600 });
    const next = { PLATFORM_POST_KEY_ENCRYPTION_REF: `file://${path}` };
    await expect(world.another(next)).rejects.toThrow('post failed to set up');
    const content = (host: World['host']) => host.by(reader).messageContent({ params: { notification_id: first } });
    {
      await using both = await world.another({
        ...next,
        PLATFORM_POST_KEY_ENCRYPTION_REF_PREVIOUS: `file://${join(world.stores.dataDir, 'test.post.key')}`,
      });
      expect((await content(both)).body).toContain('Said before the change.');
      await both.clock.advance('5m');
      await eventually(() => under(before.kid)).toEqual([many[0]?.id]);
      // A process of before may still run: only an hour later nothing is looked for any more.
      const through = async () =>
        (
          await world.sql<
            { through: boolean }[]
          >`select resealed is not distinct from kid as through from service_keys where name = 'content'`
        )[0]?.through;
      expect(await through()).toBe(false);
      await world.sql`update service_keys set since = now() - interval '61 minutes'`;
      await both.clock.advance('5m');
      await eventually(through).toBe(true);
    }
    await using alone = await world.another(next);
    expect((await content(alone)).body).toContain('Said before the change.');
    const { items } = await alone.by(as.user('post:mailbox:read')).listMailbox({ query: { to: 'sealed@example.org' } });
    expect(items).toMatchObject([{ text: expect.stringContaining('Said before the change.') }]);
  });
});
