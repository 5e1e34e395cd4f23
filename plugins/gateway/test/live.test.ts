import { eventually } from '@platform/kernel/storage/fixtures/eventually';
import { newId } from '@platform/kernel/base/ids';
import { SYSTEM } from '@platform/sdk';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { EventChannel } from '../src/live/event-channel.ts';
import { FakeConnection } from './fixtures/fake-connection.ts';
import { PERSON } from './fixtures/fake-identity.ts';
import { APP, type Browser, codeOf, ENV, HOST, ORG, Store, World } from './fixtures/world.ts';

let store: Store;
let world: World;
let browser: Browser;
const others: World[] = [];
const sockets: { connection: FakeConnection; done: Promise<unknown> }[] = [];
beforeAll(async () => {
  store = await Store.start();
}, 60_000);
afterAll(() => store[Symbol.asyncDispose]());
beforeEach(async () => {
  world = await World.start(store);
  browser = await world.signIn();
});
afterEach(async () => {
  for (const { connection, done } of sockets.splice(0)) {
    connection.close(1000);
    await done;
  }
  for (const other of [...others.splice(0), world]) await other[Symbol.asyncDispose]();
});

const sibling = async () => {
  const other = await world.sibling(store);
  others.push(other);
  return other;
};
const request = (headers: Record<string, string> = {}, tenant: object = { envId: SYSTEM.envId, appInstanceId: SYSTEM.consoleAppId }) => ({
  headers: { origin: APP, cookie: browser.cookie, ...headers },
  hostname: HOST,
  tenant,
  ip: '203.0.113.7',
});

/** A page's socket that listens to `types`. */
async function connect(types: string[] = ['*'], who = world): Promise<FakeConnection> {
  const connection = new FakeConnection();
  sockets.push({ connection, done: who.behaviour.routes.live(connection, request()) });
  connection.say({ action: 'subscribe', types });
  await eventually(() => connection.types()).toContain('subscribed');
  return connection;
}
const events = (connection: FakeConnection) => connection.received.filter(({ type }) => type.includes(':'));
const grant = async (who: World, ...groups: string[]) => {
  who.groups.set(PERSON, groups);
  await who.behaviour.on.accessChanged({ payload: { subject_ids: [PERSON] } });
};

describe('an upgrade', () => {
  test.each([
    ['another origin', { origin: 'https://evil.sys.localhost:8443' }, undefined, 'origin_denied'],
    ['no session', { cookie: '' }, undefined, 'session_required'],
    ['another application', {}, { appInstanceId: ENV }, 'app_binding_mismatch'],
  ])('GWY-046 with %s is refused before it happens', async (_, headers, tenant, code) => {
    const connection = new FakeConnection();
    await expect(world.behaviour.routes.live(connection, request(headers as Record<string, string>, tenant))).rejects.toMatchObject({
      code,
    });
    expect(connection.accepted).toBe(false);
  });
});

describe('F-17 many connections', () => {
  test('F-17 of one session are bounded, and those of another are not', async () => {
    const few = await world.sibling(store, { streamsPerSession: 2 });
    others.push(few);
    const held = [await connect(['*'], few), await connect(['*'], few)];
    const third = new FakeConnection();
    await expect(few.behaviour.routes.live(third, request())).rejects.toMatchObject({ status: 429, code: 'too_many_streams' });
    expect(third.accepted).toBe(false);
    const stream = await few.ask('GET', '/subscribe?types=*', { headers: { cookie: browser.cookie } });
    expect([stream.status, await codeOf(stream)]).toEqual([429, 'too_many_streams']);
    const other = await world.signIn();
    const theirs = new FakeConnection();
    sockets.push({ connection: theirs, done: few.behaviour.routes.live(theirs, request({ cookie: other.cookie })) });
    await eventually(() => theirs.accepted).toBe(true);
    held[0]?.close(1000);
    await sockets[0]?.done;
    await connect(['*'], few);
  });

  test('F-17 are written to a few at a time, with other work between', async () => {
    const all = await Promise.all(Array.from({ length: 200 }, () => connect()));
    const pinged = () => all.filter(connection => connection.types().includes('ping')).length;
    const between: number[] = [];
    setImmediate(() => between.push(pinged()));
    await world.behaviour.jobs.heartbeat();
    await eventually(pinged).toBe(200);
    expect(between[0]).toBeLessThan(200);
  });
});

describe('events on a socket', () => {
  test('GWY-077 come for the types that were asked for, until they are not', async () => {
    await grant(world, `platform:env:${ENV}:viewers`);
    const connection = await connect(['platform:sys:env:*', 'acme:lending:loan:decided']);
    const send = () =>
      Promise.all(
        ['platform:sys:env:updated', 'acme:lending:loan:decided', 'platform:app:instance:updated'].map(type =>
          world.hear(type, ENV, { n: 1 }),
        ),
      );
    await send();
    await eventually(() => events(connection).map(({ type }) => type)).toEqual(['platform:sys:env:updated', 'acme:lending:loan:decided']);
    connection.say({ action: 'unsubscribe', types: ['platform:sys:env:*'] });
    await eventually(() => connection.received.at(-1)).toEqual({ type: 'subscribed', types: ['acme:lending:loan:decided'] });
    await send();
    await eventually(() => events(connection).length).toBe(3);
    expect(events(connection)[2]).toMatchObject({
      type: 'acme:lending:loan:decided',
      env_id: ENV,
      payload: { n: 1 },
      created_at: expect.stringMatching(/Z$/),
    });
  });

  test("GWY-089 GWY-090 are named by the convention, and carry no publisher's token", async () => {
    world.scopes.set(PERSON, ['sys:sys:admin']);
    const connection = await connect();
    await world.hear('not-a-name', ENV, {});
    await world.hear('platform:sys:env:updated', ENV, { a: 1, publisher_id_token: 'secret' });
    await eventually(() => events(connection).length).toBe(1);
    expect(events(connection)[0]?.['payload']).toEqual({ a: 1 });
  });

  const visible: [string, { groups?: string[]; scopes?: string[] }, [string, string, Record<string, unknown>], boolean][] = [
    ["of a stranger's environment", {}, ['platform:sys:env:updated', ENV, {}], false],
    ['of an environment, to its members', { groups: [`platform:env:${ENV}:viewers`] }, ['acme:lending:loan:decided', ENV, {}], true],
    [
      'of an environment, to members of its organization',
      { groups: [`platform:org:${ORG}:owners`] },
      ['acme:lending:loan:decided', ENV, {}],
      true,
    ],
    [
      'of an environment, to members of another organization',
      { groups: [`platform:org:${PERSON}:owners`] },
      ['acme:lending:loan:decided', ENV, {}],
      false,
    ],
    [
      "of the system environment about nobody's organization",
      { groups: [`platform:org:${ORG}:owners`] },
      ['platform:acme:certificate:issued', SYSTEM.envId, {}],
      false,
    ],
    [
      'of the system environment about the own organization',
      { groups: [`platform:org:${ORG}:admins`] },
      ['platform:sys:org:updated', SYSTEM.envId, { org_id: ORG }],
      true,
    ],
    [
      'of the system environment about another organization',
      { groups: [`platform:org:${ORG}:admins`] },
      ['platform:sys:org:updated', SYSTEM.envId, { org_id: ENV }],
      false,
    ],
    [
      'of anything, to a platform administrator',
      { scopes: ['sys:sys:admin'] },
      ['platform:acme:certificate:issued', SYSTEM.envId, {}],
      true,
    ],
    [
      'that a vertical claims to be about the own organization',
      { groups: [`platform:org:${ORG}:admins`] },
      ['acme:sys:org:updated', SYSTEM.envId, { org_id: ORG }],
      false,
    ],
    ["that change everybody's navigation", {}, ['platform:sys:vertical:registered', SYSTEM.envId, { vertical: 'acme' }], true],
    ['addressed to somebody else', { scopes: ['sys:sys:admin'] }, ['platform:post:message:received', ENV, { user_id: ORG }], false],
    ['addressed to the person', {}, ['platform:post:message:received', ENV, { user_id: PERSON }], true],
    ['of traffic, without the role', { groups: [`platform:env:${ENV}:viewers`] }, ['platform:stat:traffic:snapshot', ENV, {}], false],
    [
      'of traffic, with the role',
      { groups: [`platform:env:${ENV}:viewers`], scopes: ['stat:traffic:read'] },
      ['platform:stat:traffic:snapshot', ENV, {}],
      true,
    ],
  ];
  test.each(visible)('GWY-095 events %s', async (_, { groups = [], scopes = [] }, [type, envId, payload], seen) => {
    world.scopes.set(PERSON, scopes);
    await grant(world, ...groups);
    const connection = await connect();
    await world.hear(type, envId, payload);
    await world.hear('platform:sys:vertical:registered', SYSTEM.envId, { last: true });
    await eventually(() => events(connection).at(-1)?.['payload']).toEqual({ last: true });
    expect(events(connection)).toHaveLength(seen ? 2 : 1);
  });

  test('GWY-093 a rollup of the statistics reaches who asked for it and may see it', async () => {
    await grant(world, `platform:env:${ENV}:viewers`);
    world.scopes.set(PERSON, ['stat:traffic:read']);
    const [asked, other] = [await connect(['platform:stat:traffic:snapshot']), await connect(['platform:sys:env:*'])];
    await world.ctx.kv.call('PUBLISH', 'stat:rollups:minute', 'no rollup');
    await world.ctx.kv.call('PUBLISH', 'stat:rollups:minute', JSON.stringify({ env_id: ENV, requests: 7 }));
    await eventually(() => events(asked)).toMatchObject([
      { type: 'platform:stat:traffic:snapshot', env_id: ENV, payload: { requests: 7 } },
    ]);
    expect(events(other)).toEqual([]);
  });

  test('access that was withdrawn counts for the next event', async () => {
    await grant(world, `platform:env:${ENV}:viewers`);
    const connection = await connect();
    await world.hear('acme:lending:loan:decided', ENV, { n: 1 });
    await grant(world);
    await world.hear('acme:lending:loan:decided', ENV, { n: 2 });
    await world.hear('platform:sys:vertical:registered', SYSTEM.envId, { n: 3 });
    await eventually(() => events(connection).map(({ payload }) => (payload as { n: number }).n)).toEqual([1, 3]);
  });

  test('when access cannot be decided nothing is sent, and the page hears that it missed something', async () => {
    const connection = await connect();
    Object.assign(world.ctx.services.identity, { userGroups: () => Promise.reject(new Error('away')) });
    await world.hear('acme:lending:loan:decided', ENV, {});
    await eventually(() => connection.received.at(-1)).toMatchObject({ type: 'lag', skipped: 1 });
    expect(events(connection)).toEqual([]);
  });

  test('GWY-094 GWY-096 a slow page loses events and is told which stretch, a silent one is let go', async () => {
    world.scopes.set(PERSON, ['sys:sys:admin']);
    const connection = await connect();
    connection.bufferedBytes = Number.MAX_SAFE_INTEGER;
    for (let n = 0; n < 300; n++) await world.hear('acme:lending:loan:decided', ENV, { n });
    connection.bufferedBytes = 0;
    await eventually(() => connection.types()).toContain('lag');
    const { skipped, from, to } = connection.received.at(-1) as unknown as { skipped: number; from: string; to: string };
    expect(events(connection).length + skipped).toBe(300);
    expect(from <= to).toBe(true);
    await world.behaviour.jobs.heartbeat();
    await eventually(() => connection.types()).toContain('ping');
    connection.say({ action: 'pong' });
    connection.say({ action: 'unsubscribe', types: [] });
    await eventually(() => connection.types().at(-1)).toBe('subscribed');
    for (let beat = 0; beat < 2; beat++) await world.behaviour.jobs.heartbeat();
    expect(connection.closedWith).toBeUndefined();
    await world.behaviour.jobs.heartbeat();
    expect(connection.closedWith).toBe(1001);
  });

  test('what a page says wrong is answered, and the socket stays', async () => {
    const connection = await connect();
    for (const message of [
      5,
      { action: 'dance' },
      { action: 'subscribe', types: ['a b'] },
      { action: 'join', room: 'a/b' },
      { action: 'message', room: 'r', body: 'x' },
    ])
      connection.say(message);
    await eventually(() => connection.received.filter(({ type }) => type === 'error').map(({ code }) => code)).toEqual([
      'unknown_action',
      'unknown_action',
      'malformed',
      'bad_room',
      'not_joined',
    ]);
    expect(connection.closedWith).toBeUndefined();
  });
});

describe('the end of a session', () => {
  test('GWY-006 closes its sockets with 4401 in every process, and its streams with a last word', async () => {
    const other = await sibling();
    const [here, there] = [await connect(), await connect(['*'], other)];
    const stream = await world.ask('GET', '/subscribe', { headers: { cookie: browser.cookie } });
    await world.behaviour.on['bff-session-reaper']({ payload: { session_id: 'identity-session-1' } });
    await eventually(() => [here.closedWith, there.closedWith]).toEqual([4401, 4401]);
    expect(await stream.text()).toContain('event: platform:bff:session:expired');
  });

  test('that nobody heard of is found by the heartbeat', async () => {
    const connection = await connect();
    await world.ctx.kv.call('FLUSHALL');
    await world.behaviour.jobs.heartbeat();
    expect(connection.closedWith).toBe(4401);
  });
});

describe('rooms', () => {
  test('GWY-046 what is said in one is heard by its members in every process, and by nobody else', async () => {
    const other = await sibling();
    const [ada, bob, eve] = [await connect([]), await connect([], other), await connect([], other)];
    for (const [who, room] of [
      [ada, 'desk'],
      [bob, 'desk'],
      [eve, 'hall'],
    ] as const)
      who.say({ action: 'join', room });
    const channels = async () => ((await world.ctx.kv.call('PUBSUB', 'CHANNELS', 'bff:room:*')) as string[]).length;
    const members = async () =>
      ((await world.ctx.kv.call('PUBSUB', 'NUMSUB', `bff:room:${SYSTEM.envId}:${SYSTEM.consoleAppId}:desk`)) as unknown[])[1];
    await eventually(members).toBe(2);
    await eventually(channels).toBe(2);
    ada.say({ action: 'message', room: 'desk', body: 'hello' });
    for (const who of [ada, bob])
      await eventually(() => who.received.at(-1)).toMatchObject({ type: 'chat:message', room: 'desk', from: PERSON, body: 'hello' });
    expect(eve.types()).not.toContain('chat:message');
    ada.say({ action: 'leave', room: 'desk' });
    await eventually(members).toBe(1);
  });
});

describe('a slow member of a room', () => {
  test('GWY-101 has 64 messages waiting, and hears how many were lost', async () => {
    const [ada, bob] = [await connect(), await connect()];
    for (const who of [ada, bob]) who.say({ action: 'join', room: 'desk' });
    const key = `bff:room:${SYSTEM.envId}:${SYSTEM.consoleAppId}:desk`;
    await eventually(async () => (await world.ctx.kv.call('PUBSUB', 'NUMSUB', key)) as unknown[]).toEqual([key, 1]);
    bob.bufferedBytes = Number.MAX_SAFE_INTEGER;
    for (let n = 0; n < 80; n++) ada.say({ action: 'message', room: 'desk', body: `${n}` });
    await eventually(() => ada.received.filter(({ type }) => type === 'chat:message').length).toBe(80);
    bob.bufferedBytes = 0;
    await eventually(() => bob.types()).toContain('lag');
    const heard = bob.received.filter(({ type }) => type === 'chat:message');
    // One was on its way already.
    expect(heard).toHaveLength(65);
    expect(bob.received.find(({ type }) => type === 'lag')).toMatchObject({ skipped: 15 });
  });
});

describe('events as a stream', () => {
  test('GWY-042 GWY-044 begins with its id, carries events, and is steered and ended by the page', async () => {
    world.scopes.set(PERSON, ['sys:sys:admin']);
    const opened = await world.ask('GET', '/subscribe?types=platform:sys:*', { headers: { cookie: browser.cookie } });
    expect([opened.status, opened.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
    const steered = await world.ask('POST', '/subscribe', {
      headers: browser.headers,
      body: JSON.stringify({ types: ['acme:*'], filters: { env_id: ENV, resource_id: 'loan-1' } }),
    });
    const { subscription_id: id } = (await steered.json()) as { subscription_id: string };
    await world.hear('platform:sys:env:updated', ENV, {});
    await world.hear('acme:lending:loan:decided', ORG, { loan_id: 'loan-1' });
    await world.hear('acme:lending:loan:decided', ENV, { loan_id: 'loan-2' });
    await world.hear('acme:lending:loan:decided', ENV, { loan_id: 'loan-1' });
    await world.behaviour.jobs.heartbeat();
    const reader = (opened.body as ReadableStream<Uint8Array>)
      .pipeThrough(new TextDecoderStream() as never)
      .getReader() as unknown as ReadableStreamDefaultReader<string>;
    const frames = [await reader.read(), await reader.read(), await reader.read()].map(({ value }) => value ?? '');
    expect(frames[0]).toBe(`event: ready\ndata: {"subscription_id":"${id}"}\n\n`);
    expect(frames[1]).toMatch(
      /^event: acme:lending:loan:decided\nid: [\w-]+\ndata: \{"type":"acme:lending:loan:decided","payload":\{"loan_id":"loan-1"\}/,
    );
    expect(frames[2]).toBe(': ping\n\n');
    expect((await world.ask('DELETE', '/subscribe', { headers: browser.headers })).status).toBe(204);
    expect((await reader.read()).done).toBe(true);
  });

  test('GWY-043 without one there is nothing to steer: 409', async () => {
    const answer = await world.ask('POST', '/subscribe', { headers: browser.headers, body: '{"types":[]}' });
    expect([answer.status, await codeOf(answer)]).toEqual([409, 'no_live_stream']);
  });

  test('a second one takes the place of the first, and another site cannot open one', async () => {
    const first = await world.ask('GET', '/subscribe', { headers: { cookie: browser.cookie } });
    expect((await world.ask('GET', '/subscribe', { headers: { cookie: browser.cookie }, origin: 'https://evil.localhost' })).status).toBe(
      403,
    );
    const gone = new AbortController();
    await world.ask('GET', '/subscribe', { headers: { cookie: browser.cookie }, signal: gone.signal });
    expect(await first.text()).toBe('');
    gone.abort();
    expect((await world.ask('DELETE', '/subscribe', { headers: browser.headers })).status).toBe(409);
  });
});

describe('families that verticals bring', () => {
  test('are heard while they are there, and not any more after', async () => {
    await grant(world, `platform:env:${ENV}:viewers`);
    const connection = await connect();
    await world.registered({ stream_families: ['acme-loans', 'sys', 'audit'] });
    expect([...world.feeds.keys()]).toEqual(['acme-loans']);
    await world.feeds.get('acme-loans')?.({
      id: newId(),
      event: 'acme:lending:loan:decided',
      envId: ENV,
      payload: { n: 1, publisher_id_token: 'x' },
      attempt: 1,
      correlationId: 'c',
    });
    await eventually(() => events(connection).map(({ type }) => type)).toEqual(['acme:lending:loan:decided']);
    await world.registered({ life: 'draining', stream_families: ['acme-loans'] });
    expect([...world.feeds.keys()]).toEqual(['acme-loans']);
    await world.registered({ life: 'gone', stream_families: ['acme-loans'] });
    expect([...world.feeds.keys()]).toEqual([]);
  });
});

describe('H-22 events that the gateway itself may have missed', () => {
  test('H-22 before it heard a family are a lag to whoever listens, and nothing to who has asked for no type', async () => {
    const [asked, mute] = [await connect(), await connect([])];
    await world.registered({ stream_families: ['acme-loans'] });
    expect(asked.types()).not.toContain('lag');
    world.begun.get('acme-loans')?.();
    await eventually(() => asked.types()).toContain('lag');
    // The families of the platform are subscriptions of its contract.
    world.behaviour.missed('liveSys');
    await eventually(() => asked.types().filter(type => type === 'lag').length).toBe(2);
    expect(mute.types()).not.toContain('lag');
  });
});

describe('a bounded channel', () => {
  test('GWY-100 puts the gap where the loss was', async () => {
    const channel = new EventChannel(2);
    const note = (n: number) => channel.push({ kind: 'note', type: 'n', data: { n } });
    for (let n = 0; n < 5; n++) note(n);
    expect(await channel.next()).toMatchObject({ data: { n: 0 } });
    note(5);
    channel.close();
    channel.push({ kind: 'ping' });
    expect(await channel.next()).toBeUndefined();
    const other = new EventChannel(2);
    for (let n = 0; n < 3; n++) other.push({ kind: 'note', type: 'n', data: { n } });
    await other.next();
    other.push({ kind: 'note', type: 'n', data: { n: 3 } });
    expect([await other.next(), await other.next(), await other.next()]).toMatchObject([
      { data: { n: 1 } },
      { kind: 'lag', skipped: 1 },
      { data: { n: 3 } },
    ]);
  });
});
