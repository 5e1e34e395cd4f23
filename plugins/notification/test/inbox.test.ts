import { as, eventually } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { World } from './fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

describe('sending', () => {
  test('NTF-001 NTF-002 C29 takes the four categories, and answers another with 500 category_unsupported', async () => {
    const env_id = world.env();
    for (const category of ['transaction', 'security', 'marketing', 'system']) await world.send({ env_id, category });
    await expect(world.send({ env_id, category: 'gossip' })).rejects.toMatchObject({ status: 500, code: 'category_unsupported' });
    expect((await world.sql<object[]>`select 1 from messages where env_id = ${env_id}`).length).toBe(4);
  });

  test('NTF-006 is for workloads with post:write: people get 403 m2m_required, workloads without it 403, and nobody 401', async () => {
    const body = JSON.stringify({ env_id: world.env(), category: 'system', recipient: { user_id: 'u' }, subject: 's', body: 'b' });
    const status = async (init: object) => {
      const { status: code, json } = await world.host.fetch('/v1/send', { method: 'POST', body, ...init });
      return [code, json['code'] ?? json['status']];
    };
    expect(await status({})).toEqual([401, 'unauthenticated']);
    expect(await status({ persona: as.user('post:write') })).toEqual([403, 'm2m_required']);
    expect((await status({ persona: as.machine('unknown-post') }))[0]).toBe(403);
    expect(await status({ persona: world.producer() })).toEqual([202, 'queued']);
  });

  test('NTF-033 NTF-034 keeps what was declared, with the sender of the token and not the one that the body claims', async () => {
    const env_id = world.env();
    const user = as.userIn(env_id, 'post:read');
    const refs = [{ type: 'loan', id: '7', url: 'https://loans.example/7' }];
    const id = await world.send({
      env_id,
      recipient: { user_id: user.id },
      priority: 'high',
      resource_refs: refs,
      stream_family: 'somebody-else',
      correlation_id: 'c-1',
    });
    await world.shown(id);
    expect(await world.host.by(user).getMessage({ params: { notification_id: id } })).toMatchObject({
      category: 'transaction',
      priority: 'high',
      stream_family: 'shop-post',
      title: 'Hello',
      user_id: user.id,
      template_key: null,
      resource_refs: refs,
      correlation_id: 'c-1',
      read_at: null,
      deliveries: [{ channel: 'view', state: 'delivered' }],
    });
    const named = await world.send({ env_id, recipient: { user_id: user.id }, template: { key: 'shop.paid' }, subject: 'S', body: 'b' });
    await world.shown(named);
    expect(await world.host.by(user).getMessage({ params: { notification_id: named } })).toMatchObject({
      template_key: 'shop.paid',
      priority: 'normal',
      resource_refs: [],
    });
  });

  test('a message without words, and an address that is a list of addresses, are refused', async () => {
    const env_id = world.env();
    await expect(
      world.host.by(world.producer()).send({ body: { env_id, category: 'system', recipient: { user_id: 'u' }, subject: 'alone' } }),
    ).rejects.toMatchObject({
      status: 400,
      code: 'content_required',
    });
    for (const email of [
      'a@b.example, c@d.example',
      '<a@b.example>\r\nRCPT TO:<e@x.example>',
      'A <a@b.example>',
      'a b@c.example',
      '@x.example',
    ])
      await expect(world.send({ env_id, recipient: { user_id: 'u', email } })).rejects.toMatchObject({
        status: 400,
        code: 'recipient_invalid',
      });
  });

  test('the same key of one producer is one message; of another producer it is another', async () => {
    const env_id = world.env();
    const send = (producer: string) => world.send({ env_id, idempotency_key: 'once' }, world.producer(producer));
    const [first, ...others] = [await send('one-post'), await send('one-post'), await send('two-post')];
    expect([others[0] === first, others[1] === first]).toEqual([true, false]);
  });

  test('G-K-19 four hundred at once are taken from one producer; the next is told when to come again', async () => {
    const env_id = world.env();
    const [hasty, other] = [world.producer('hasty-post'), world.producer('calm-post')];
    const send = () => world.send({ env_id, idempotency_key: 'k' }, hasty);
    let [taken, refused] = [0, [] as { status: number; code: string; headers: Record<string, string> }[]];
    while (refused.length === 0) {
      const answers = await Promise.allSettled(Array.from({ length: 450 }, send));
      taken += answers.filter(({ status }) => status === 'fulfilled').length;
      refused = answers.flatMap(answer => (answer.status === 'rejected' ? [answer.reason as (typeof refused)[number]] : []));
    }
    expect(taken).toBeGreaterThanOrEqual(400);
    expect(refused[0]).toMatchObject({
      status: 429,
      code: 'rate_limited',
      headers: { 'retry-after': expect.stringMatching(/^[12]$/), 'ratelimit-policy': '"send";q=400;w=2' },
    });
    await world.send({ env_id }, other);
    await eventually(() => send().catch(() => undefined)).toBeDefined();
  });
});

describe('the inbox', () => {
  test('NTF-042 NTF-057 NTF-061 C4 has every message, and the event tells its reader with the count of the unread', async () => {
    const env_id = world.env();
    const ids = [
      await world.send({ env_id, recipient: { user_id: 'reader' } }),
      await world.send({ env_id, recipient: { user_id: 'reader' }, subject: 'Again' }),
    ];
    for (const id of ids) await world.shown(id);
    const told = () =>
      world.host.bus.filter(({ event_type, env_id: of }) => of === env_id && event_type === 'platform:notification:received');
    await eventually(() => told().length).toBe(2);
    expect(told()[0]?.payload).toEqual({
      user_id: 'reader',
      notification_id: ids[0],
      title: 'Hello',
      body: 'It happened.',
      category: 'transaction',
      resource_refs: [],
      unread_count: expect.any(Number),
    });
    expect(told().map(({ payload }) => payload['unread_count'])).toEqual([1, 2]);
  });

  test('NTF-057 delivers while the bus is away; the event follows', async () => {
    const env_id = world.env();
    world.host.busAway = true;
    try {
      await world.shown(await world.send({ env_id }));
    } finally {
      world.host.busAway = false;
    }
    const told = () =>
      world.host.bus.filter(({ event_type, env_id: of }) => of === env_id && event_type === 'platform:notification:received').length;
    await eventually(async () => (await world.host.clock.advance('1s'), told())).toBe(1);
  });

  test('NTF-035 NTF-047 NTF-048 NTF-058 NTF-061 lists, shows and counts; marking read counts once and tells once, in the transaction of the mark', async () => {
    const env_id = world.env();
    const user = as.userIn(env_id, 'post:read', 'post:write');
    const by = world.host.by(user);
    const ids: string[] = [];
    for (const subject of ['One', 'Two', 'Three'])
      ids.push(await world.send({ env_id, recipient: { user_id: user.id }, subject, category: subject === 'Two' ? 'security' : 'system' }));
    for (const id of ids) await world.shown(id);
    expect((await by.listMessages({ query: { limit: 2 } })).items.map(({ title }) => title)).toEqual(['Three', 'Two']);
    expect((await by.listMessages({ query: { category: 'security' } })).items.map(({ title }) => title)).toEqual(['Two']);
    const first = await by.listMessages({ query: { limit: 2 } });
    expect((await by.listMessages({ query: { limit: 2, cursor: first.next_cursor as string } })).items.map(({ title }) => title)).toEqual([
      'One',
    ]);
    expect(await by.unreadCount()).toEqual({ unread_count: 3 });
    expect(await by.messageContent({ params: { notification_id: ids[0] as string } })).toEqual({
      notification_id: ids[0],
      subject: 'One',
      body: 'It happened.',
      content_type: 'text/plain',
      locale: 'en',
      rendered_from: 'literal',
    });
    const read = await by.readMessage({ params: { notification_id: ids[0] as string } });
    await world.host.clock.advance('1s');
    expect(await by.readMessage({ params: { notification_id: ids[0] as string } })).toEqual(read);
    expect(read.unread_count).toBe(2);
    const readAt = async (index: number) => (await by.getMessage({ params: { notification_id: ids[index] as string } })).read_at;
    expect([await readAt(0), await readAt(1)]).toEqual([read.read_at, null]);
    const told = () =>
      world.sql<
        { payload: object }[]
      >`select payload from outbox where event_type = 'platform:post:notification:read' and env_id = ${env_id} order by id`;
    expect((await told()).map(({ payload }) => payload)).toEqual([
      { user_id: user.id, notification_id: ids[0], read_at: read.read_at, unread_count: 2 },
    ]);
    expect((await by.listMessages({ query: { unread: true } })).items.length).toBe(2);
    expect(await by.readAll()).toEqual({ updated: 2, unread_count: 0 });
    expect(await by.readAll()).toEqual({ updated: 0, unread_count: 0 });
    expect((await told()).length).toBe(3);
  });

  test('NTF-058 a mark that cannot be told is not made', async () => {
    const env_id = world.env();
    const user = as.userIn(env_id, 'post:read', 'post:write');
    const id = await world.send({ env_id, recipient: { user_id: user.id } });
    await world.shown(id);
    await world.sql`alter table outbox add constraint never check (event_type <> 'platform:post:notification:read') not valid`;
    try {
      await expect(world.host.by(user).readMessage({ params: { notification_id: id } })).rejects.toThrow();
    } finally {
      await world.sql`alter table outbox drop constraint never`;
    }
    expect(await world.host.by(user).unreadCount()).toEqual({ unread_count: 1 });
  });

  test('NTF-047 nobody reads what is for somebody else, except administrators of its environment who say whose it is', async () => {
    const [env_id, elsewhere] = [world.env(), world.env()];
    const [owner, other] = [as.userIn(env_id, 'post:read', 'post:write'), as.userIn(env_id, 'post:read', 'post:write')];
    const id = await world.send({ env_id, recipient: { user_id: owner.id } });
    await world.shown(id);
    const at = { params: { notification_id: id } };
    for (const refused of [
      () => world.host.by(other).getMessage(at),
      () => world.host.by(other).messageContent(at),
      () => world.host.by(other).readMessage(at),
      () => world.host.by(as.userIn(elsewhere, 'post:read')).getMessage(at),
    ])
      await expect(refused()).rejects.toMatchObject({ status: 404, code: 'message_not_found' });
    const of = (persona: ReturnType<typeof as.user>, targetEnvId?: string) =>
      world.host.by(persona).listMessages({ query: { user_id: owner.id }, ...(targetEnvId ? { targetEnvId } : {}) });
    await expect(of(other, env_id)).rejects.toMatchObject({ status: 403, code: 'admin_required' });
    await expect(of(world.admin(env_id))).rejects.toMatchObject({ status: 403, code: 'admin_required' });
    await expect(of(world.admin(elsewhere), env_id)).rejects.toMatchObject({ status: 403 });
    expect((await of(world.admin(env_id), env_id)).items.map(({ notification_id }) => notification_id)).toEqual([id]);
    // Who may read may not mark, and who may do neither does neither.
    const [reading, nothing] = [world.host.by({ ...owner, scopes: ['post:read'] }), world.host.by({ ...owner, scopes: [] })];
    expect((await reading.getMessage(at)).read_at).toBeNull();
    for (const refused of [
      () => reading.readMessage(at),
      () => reading.readAll(),
      () => nothing.listMessages(),
      () => nothing.getMessage(at),
      () => nothing.messageContent(at),
      () => nothing.unreadCount(),
    ])
      await expect(refused()).rejects.toMatchObject({ status: 403, code: 'policy_denied' });
  });

  test('a token that was given less than its administrator may reads nothing of others', async () => {
    const env_id = world.env();
    const owner = as.userIn(env_id, 'post:read');
    const id = await world.send({ env_id, recipient: { user_id: owner.id } });
    await world.shown(id);
    const staff = as.delegated(env_id, 'post:read', 'post:admin');
    world.host.by(staff);
    const of = (token: string) => world.host.fetch(`/v1/messages?user_id=${owner.id}&target_env_id=${env_id}`, { token });
    expect(await of(world.host.mint.token(staff, 'post', { scope: 'platform:post:read' }))).toMatchObject({
      status: 403,
      json: { code: 'admin_required' },
    });
    expect(await of(world.host.mint.token(staff, 'post'))).toMatchObject({ status: 200, json: { items: [{ notification_id: id }] } });
  });

  test('G-POST-01 what was sent to an address before there was an account comes to whoever proved the address', async () => {
    const env_id = world.env();
    const id = await world.send({ env_id, recipient: { user_id: 'email:Ada@Example.org' } });
    await world.shown(id);
    const list = async (persona: ReturnType<typeof as.user>) =>
      (await world.host.by(persona).listMessages()).items.map(({ notification_id }) => notification_id);
    expect(await list({ ...as.userIn(env_id, 'post:read'), email: 'eve@example.org' })).toEqual([]);
    const ada = as.userIn(env_id, 'post:read');
    expect(await list(ada)).toEqual([id]);
    expect(await list(ada)).toEqual([id]);
  });

  test('NTF-062 a count that fails is 0 and says that it is degraded', async () => {
    const user = as.user('post:read');
    await world.sql`alter table messages rename column read_at to gone`;
    try {
      const { status, json, headers } = await world.host.fetch('/v1/messages/unread-count', { persona: user });
      expect([status, json, headers['degraded']]).toEqual([200, { unread_count: 0 }, 'true']);
    } finally {
      await world.sql`alter table messages rename column gone to read_at`;
    }
  });

  test('what a confidential message says is for its channels: the inbox and the event have its subject, and it is sealed at rest', async () => {
    const env_id = world.env();
    const user = as.userIn(env_id, 'post:read');
    const id = await world.send({
      env_id,
      recipient: { user_id: user.id, email: 'secret-reader@example.org' },
      subject: 'Reset',
      body: 'token-of-gold',
      confidential: true,
      channels: ['email'],
    });
    await world.reaches(id, 'delivered');
    expect(await world.host.by(user).messageContent({ params: { notification_id: id } })).toMatchObject({ subject: 'Reset', body: '' });
    const [mail] = (await world.host.by(as.user('post:mailbox:read')).listMailbox({ query: { to: 'secret-reader@example.org' } })).items;
    expect(mail?.text).toContain('token-of-gold');
    const rows = JSON.stringify([
      await world.sql`select * from messages`,
      await world.sql`select * from mailbox`,
      await world.sql`select * from outbox`,
      await world.sql`select * from deliveries`,
    ]);
    expect(rows).not.toContain('token-of-gold');
  });
});
