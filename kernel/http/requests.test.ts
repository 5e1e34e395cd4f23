import { connect as netConnect } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { as, boot, type BootedHost } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { newId } from '../base/ids.ts';
import { manifestOf } from '../base/manifest.ts';
import { newWorld, probeOf, probePlugin } from '../test/probe.ts';
import type { probe } from '../test/probe-contract.ts';

const world = newWorld();
let host: BootedHost<typeof probe>;
const reader = as.user('probe:things:read');
const writer = as.user('probe:things:read', 'probe:things:write');

beforeAll(async () => {
  host = await boot<typeof probe, (typeof plugin)['uses']>(plugin, {
    logLevel: 'info',
    stubs: {
      sys: {
        echo: (async (input: { headers: Record<string, string> }) => ({
          correlation_id: input.headers['x-platform-correlation-id'],
        })) as never,
      },
    },
  });
});
const plugin = probePlugin(world);
afterAll(async () => host?.[Symbol.asyncDispose]());

/** Writes bytes as they are, for what an HTTP client would not send. */
function rawRequest(text: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const wire = netConnect(host.process.port, '127.0.0.1');
    const socket = tlsConnect(
      {
        socket: wire,
        servername: 'probe.ops.sys.localhost',
        ca: host.stores.authority.pq.files.rootCertificate,
        minVersion: 'TLSv1.3',
        ecdhCurve: 'X25519MLKEM768',
      },
      () => socket.write(text),
    );
    let answer = '';
    socket.on('data', chunk => (answer += chunk.toString()));
    socket.on('error', reject);
    socket.on('close', () => resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0), text: answer }));
  });
}
const HOST = 'host: probe.ops.sys.localhost\r\n';

describe('a request that two servers could read differently is refused and its connection closed (H-14)', () => {
  test.each([
    ['two Host headers', `GET /v1/greet HTTP/1.1\r\n${HOST}${HOST}\r\n`, 400, 'Exactly one Host header'],
    ['no Host header', 'GET /v1/greet HTTP/1.1\r\nx-platform-service: probe\r\n\r\n', 421, ''],
    ['a lookalike of an injected header', `GET /v1/greet HTTP/1.1\r\n${HOST}x_platform_env_id: 1\r\n\r\n`, 400, 'spelt with hyphens'],
    ['a lookalike spelt half and half', `GET /v1/greet HTTP/1.1\r\n${HOST}X-Platform_Env-Id: 1\r\n\r\n`, 400, 'spelt with hyphens'],
    [
      'more than a hundred headers',
      `GET /v1/greet HTTP/1.1\r\n${HOST}${Array.from({ length: 100 }, (_, index) => `x-a${index}: 1\r\n`).join('')}\r\n`,
      431,
      'headers_too_large',
    ],
    [
      'a length beside chunks',
      `POST /v1/things HTTP/1.1\r\n${HOST}content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      '',
    ],
    ['bare line feeds', 'GET /v1/greet HTTP/1.1\nhost: probe.ops.sys.localhost\n\n', 400, ''],
    ['a target that names another authority', `GET //v1/greet HTTP/1.1\r\n${HOST}connection: close\r\n\r\n`, 404, 'not_found'],
    ['a target of two slashes', `GET // HTTP/1.1\r\n${HOST}connection: close\r\n\r\n`, 404, 'not_found'],
    [
      'a target of two slashes that upgrades',
      `GET // HTTP/1.1\r\n${HOST}connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n`,
      404,
      'not_found',
    ],
  ])('%s', async (_, text, status, word) => {
    const answer = await rawRequest(text.includes('connection:') ? text : text.replace(/\r\n\r\n/, '\r\nconnection: close\r\n\r\n'));
    expect(answer.status, answer.text).toBe(status);
    expect(answer.text).toContain(word);
  });

  test('a hundred headers are still read', async () => {
    const { status } = await rawRequest(
      `GET /v1/greet HTTP/1.1\r\n${HOST}connection: close\r\n${Array.from({ length: 98 }, (_, index) => `x-a${index}: 1\r\n`).join(
        '',
      )}\r\n`,
    );
    expect(status).toBe(200);
  });

  test('another host than ours is misdirected', async () => {
    const answer = await host.fetch('/v1/greet', { host: 'elsewhere.example.org' });
    expect([answer.status, answer.json['code']]).toEqual([421, 'misdirected']);
  });
});

describe('a body', () => {
  const send = (body: string, headers: Record<string, string> = {}) =>
    host.fetch('/v1/things', { method: 'POST', persona: writer, body, headers });

  test('of more bytes than the route takes is 413, whether its length is said or not', async () => {
    const said = await send(JSON.stringify({ name: 'x'.repeat(2_000) }));
    expect([said.status, said.json['code'], said.headers['connection']]).toEqual([413, 'body_too_large', 'close']);
    const body = `{"name":"${'x'.repeat(2_000)}"}`;
    const chunked = await rawRequest(
      `POST /v1/things HTTP/1.1\r\n${HOST}authorization: Bearer ${host.mint.token(writer, 'probe')}\r\n` +
        'content-type: application/json\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n' +
        `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    );
    expect(chunked.status).toBe(413);
  });

  test('that is not JSON is 400, and of another media type 415', async () => {
    const malformed = await send('{"name":');
    expect([malformed.status, malformed.json['code']]).toEqual([400, 'malformed']);
    const text = await send('name=x', { 'content-type': 'application/x-www-form-urlencoded' });
    expect([text.status, text.json['code']]).toEqual([415, 'unsupported_media_type']);
  });

  test('with unknown members and wrong types is 400 with a pointer to each fault', async () => {
    const answer = await send(JSON.stringify({ size: 'big', extra: 1, place: { x: 1, y: 2, z: 3 } }));
    expect([answer.status, answer.json['code']]).toEqual([400, 'validation_failed']);
    const faults = answer.json['errors'] as { pointer: string; code: string }[];
    expect(faults.map(({ pointer }) => pointer)).toEqual(expect.arrayContaining(['/name', '/size', '/extra', '/place/z']));
    expect(faults.find(({ pointer }) => pointer === '/extra')?.code).toBe('unknown_member');
    expect(faults.find(({ pointer }) => pointer === '/name')?.code).toBe('required');
  });

  test('where none is wanted is refused, and an empty object is none', async () => {
    const full = await host.fetch('/v1/things/7/archive', { method: 'POST', persona: writer, body: '{"a":1}' });
    expect([full.status, full.json['code']]).toEqual([400, 'validation_failed']);
    expect((await host.fetch('/v1/things/7/archive', { method: 'POST', persona: writer, body: '{}' })).status).toBe(204);
  });

  test('is read only after the gate: a stranger learns nothing of it', async () => {
    expect((await host.fetch('/v1/things', { method: 'POST', body: '{"name":' })).status).toBe(401);
    expect((await host.fetch('/v1/things', { method: 'POST', persona: reader, body: '{"name":' })).status).toBe(403);
  });
});

describe('a path and its query', () => {
  test('a path nobody declared is 404, and a method it does not take 405 with those it does', async () => {
    expect((await host.fetch('/v1/nothing')).json['code']).toBe('not_found');
    const answer = await host.fetch('/v1/things', { method: 'DELETE' });
    expect([answer.status, answer.json['code']]).toEqual([405, 'method_not_allowed']);
    expect(String(answer.headers['allow']).split(', ').sort()).toEqual(['GET', 'HEAD', 'POST']);
  });

  test('bad percent-encoding is 400; good encoding reaches the handler decoded', async () => {
    const bad = await host.fetch('/v1/things/%E0%A4%A');
    expect([bad.status, bad.json['code']]).toEqual([400, 'malformed']);
    expect((await host.fetch('/v1/things/a%2Fb', { persona: reader })).json['thing_id']).toBe('a/b');
    expect((await host.fetch('/v1/tagged/a/b%20c')).json).toEqual({ rest: 'a/b c' });
  });

  test.each<[string, string, string, string | undefined, string[]]>([
    ['a member', 'POST', '/v1/things', '{"name":"a\\u0000b"}', ['/name']],
    [
      'a member of a member, and the name of another',
      'POST',
      '/v1/things',
      '{"name":"x","notes":"\\u0000","a\\u0000/b":1}',
      ['/notes', '/a\uFFFD~1b'],
    ],
    ['a member as half of a surrogate pair', 'POST', '/v1/things', '{"name":"\\uD83D","notes":"\\ude00 x"}', ['/name', '/notes']],
    ['the name of a member as half of a pair', 'POST', '/v1/things', '{"name":"x","\\ud83d":1}', ['/\uFFFD']],
    ['the query', 'GET', '/v1/things?cursor=a%00', undefined, ['/query/cursor']],
    ['the query of a stream', 'GET', '/v1/ticks?token=%00', undefined, ['/query/token']],
    ['the path', 'GET', '/v1/things/a%00b', undefined, ['/path']],
    ['the path of a door that takes any', 'GET', '/v1/tagged/a/%00', undefined, ['/path']],
  ])('F-19 U+0000, or text no database keeps, in %s is refused with its place', async (_, method, path, body, pointers) => {
    const answer = await host.fetch(path, { method, persona: writer, ...(body === undefined ? {} : { body }) });
    expect([answer.status, answer.json['code']]).toEqual([400, 'validation_failed']);
    expect((answer.json['errors'] as { pointer: string }[]).map(({ pointer }) => pointer)).toEqual(pointers);
  });

  test('F-19 what only looks like U+0000 is text like any other', async () => {
    const answer = await host.fetch('/v1/things/one', { method: 'PUT', persona: writer, body: JSON.stringify({ name: 'C:\\u0000' }) });
    expect([answer.status, answer.json['name']]).toEqual([200, 'C:\\u0000']);
    const whole = await host.fetch('/v1/things/one', { method: 'PUT', persona: writer, body: '{"name":"\\ud83d\\ude00"}' });
    expect([whole.status, whole.json['name']]).toEqual([200, '😀']);
    expect((await host.fetch('/v1/tagged/%2500')).json).toEqual({ rest: '%00' });
  });

  test('F-32 a target that is no id is nobody’s environment, whoever asks', async () => {
    for (const persona of [reader, as.user('probe:things:read', 'sys:sys:admin'), as.machine('worker', 'probe:things:read')]) {
      for (const target of ['zzz', '%27', '']) {
        const answer = await host.fetch(`/v1/targeted?target_env_id=${target}`, { persona });
        expect([target, answer.status, answer.json['code']]).toEqual([target, 403, 'target_denied']);
      }
    }
  });

  test('numbers and truth values are read from their text; what does not read is refused by name', async () => {
    expect((await host.fetch('/v1/things?limit=7&fresh=true&kind=small', { persona: reader })).status).toBe(200);
    expect(world.calls.at(-1)).toBe('list {"limit":7,"fresh":true,"kind":"small"}');
    for (const [query, pointer] of [
      ['limit=many', '/query/limit'],
      ['limit=0', '/query/limit'],
      ['limit=201', '/query/limit'],
      ['fresh=maybe', '/query/fresh'],
      ['wrong=1', '/query/wrong'],
      ['limit=1&limit=2', '/query/limit'],
    ]) {
      const answer = await host.fetch(`/v1/things?${query}`, { persona: reader });
      expect([query, answer.status]).toEqual([query, 400]);
      expect((answer.json['errors'] as { pointer: string }[]).map(({ pointer }) => pointer)).toContain(pointer);
    }
  });

  test('the target is required where it is, may come by header, and must be one', async () => {
    expect((await host.fetch('/v1/targeted', { persona: reader })).json['code']).toBe('target_env_required');
    expect((await host.fetch(`/v1/targeted?target_env_id=${reader.envId}`, { persona: reader })).json['target']).toBe(reader.envId);
    expect((await host.fetch('/v1/targeted', { persona: reader, headers: { 'x-bff-target-env-id': reader.envId } })).json['target']).toBe(
      reader.envId,
    );
    expect(
      (await host.fetch(`/v1/targeted?target_env_id=${reader.envId}`, { persona: reader, headers: { 'x-bff-target-env-id': 'other' } }))
        .json['code'],
    ).toBe('target_mismatch');
    const other = await host.fetch('/v1/targeted?target_env_id=another', { persona: reader });
    expect([other.status, other.json['code']]).toEqual([403, 'target_denied']);
  });
});

describe('an answer', () => {
  test('of success carries status, entity tag and correlation id; of failure a problem that says only what was meant to be said', async () => {
    const made = await host.fetch('/v1/things', {
      method: 'POST',
      persona: writer,
      body: JSON.stringify({ name: 'one' }),
      headers: { 'x-platform-correlation-id': 'click-1' },
    });
    expect([made.status, made.headers['etag'], made.headers['x-platform-correlation-id'], made.headers['cache-control']]).toEqual([
      201,
      '"1"',
      'click-1',
      'no-store',
    ]);
    const [event] = await host.events('platform:probe:thing:created');
    expect(event).toMatchObject({
      correlation_id: 'click-1',
      env_id: writer.envId,
      payload: { thing_id: made.json['thing_id'], name: 'one' },
    });
    const taken = await host.fetch('/v1/things', { method: 'POST', persona: writer, body: JSON.stringify({ name: 'taken' }) });
    expect(taken.json).toMatchObject({
      status: 409,
      code: 'thing_taken',
      type: 'urn:platform:problem:probe:thing_taken',
      detail: 'Choose another name.',
    });
    expect(taken.headers['content-type']).toContain('application/problem+json');
    expect(taken.json['instance']).toMatch(/^urn:uuid:/);
  });

  test.each([
    ['an unexpected failure', '/v1/broken', 'internal'],
    ['an answer of another shape than promised', '/v1/lying', 'answer_invalid'],
    ['a problem nobody declared', '/v1/undeclared', 'internal'],
    ['a capability nobody declared', '/v1/reaching', 'internal'],
  ])('%s is 500 without a word of the inside', async (_, path, code) => {
    const answer = await host.fetch(path);
    expect([answer.status, answer.json['code']]).toEqual([500, code]);
    expect(answer.text).not.toContain('secret of the inside');
    expect(answer.json).not.toHaveProperty('detail');
  });

  test.each([
    ['/v1/foreign', 'platform:auth:user:created'],
    ['/v1/misshapen', 'platform:probe:thing:created'],
  ])('an event the service does not own, or a payload that does not fit, fails its transaction (%s)', async (path, name) => {
    const before = host.bus.filter(({ event_type }) => event_type === name).length;
    expect((await host.fetch(path, { method: 'POST' })).status).toBe(500);
    expect(host.bus.filter(({ event_type }) => event_type === name)).toHaveLength(before);
  });

  test('a correlation id that is none is replaced, and the one of the request goes on to other services', async () => {
    const made = await host.fetch('/v1/greet', { headers: { 'x-platform-correlation-id': 'has spaces' } });
    expect(made.headers['x-platform-correlation-id']).toMatch(/^probe-[0-9a-f-]{36}$/);
    expect((await host.fetch('/v1/asks', { headers: { 'x-platform-correlation-id': 'click-2' } })).json).toEqual({
      correlation_id: 'click-2',
    });
  });
});

test('KRN-030 health reports the build of the running binary', async () => {
  const { status, json } = await host.fetch('/v1/health');
  expect([status, json['build'], json['version'], json['service']]).toEqual([200, 'test', '0.0.0-test.test', 'probe']);
});

describe('a create under an Idempotency-Key (G-K-03)', () => {
  const make = (key: string, name: string, persona = writer) =>
    host.fetch('/v1/things', { method: 'POST', persona, headers: { 'idempotency-key': key }, body: JSON.stringify({ name }) });
  const made = (name: string) => world.calls.filter(call => call === `create ${name}`).length;

  test('F-08 happens once: the repeat is given the first answer and says so, at once, in parallel and after a restart of nothing', async () => {
    const [first, ...others] = await Promise.all(Array.from({ length: 6 }, () => make('key-1', 'once')));
    const answered = [first, ...others].filter(answer => answer?.status === 201);
    for (const answer of [first, ...others]) expect([201, 409]).toContain(answer?.status);
    const again = await make('key-1', 'once');
    expect(again).toMatchObject({ status: 201, json: answered[0]?.json });
    expect(again.headers['idempotent-replay']).toBe('true');
    expect(again.headers['etag']).toBe('"1"');
    expect(made('once')).toBe(1);
  });

  test('F-08 another request under the same key is refused, another caller has keys of its own, and a refusal is not kept', async () => {
    await make('key-2', 'mine');
    expect(await make('key-2', 'other')).toMatchObject({ status: 409, json: { code: 'idempotency_key_reused' } });
    expect((await make('key-2', 'theirs', as.user('probe:things:write'))).status).toBe(201);
    expect((await make('key-3', 'taken')).status).toBe(409);
    expect((await make('key-3', 'free')).status).toBe(201);
    expect(await make('käse', 'x')).toMatchObject({ status: 400, json: { code: 'malformed' } });
  });

  test('F-08 it stands for 24 hours', async () => {
    await make('key-4', 'daily');
    await host.clock.leap('23h');
    expect((await make('key-4', 'daily')).headers['idempotent-replay']).toBe('true');
    await host.clock.leap('2h');
    expect((await make('key-4', 'daily')).headers['idempotent-replay']).toBeUndefined();
    expect(made('daily')).toBe(2);
  });

  test('F-08 what took effect and lost its answer is not done again; what never began is', async () => {
    await make('key-5', 'begun');
    const sql = await host.sql();
    await sql`update idempotent_answers set status = null, body = null where key = 'key-5'`;
    expect(await make('key-5', 'begun')).toMatchObject({ status: 409, json: { code: 'idempotency_in_progress' } });
    await host.clock.advance('3m');
    expect(await make('key-5', 'begun')).toMatchObject({ status: 409, json: { code: 'idempotency_answer_gone' } });
    await sql`update idempotent_answers set committed = false where key = 'key-5'`;
    expect((await make('key-5', 'begun')).status).toBe(201);
    expect(made('begun')).toBe(2);
  });

  test('F-08 the transaction of a request says with its commit that the key has taken effect', async () => {
    const asked = make('key-7', 'held');
    const sql = await host.sql();
    const rows = async () => [...(await sql<object[]>`select committed, status from idempotent_answers where key = 'key-7'`)];
    await expect.poll(rows).toEqual([{ committed: true, status: null }]);
    world.answer.resolve();
    expect((await asked).status).toBe(201);
  });

  test('F-08 a secret that is shown once is kept nowhere', async () => {
    const ask = () => host.fetch('/v1/issue', { method: 'POST', persona: writer, headers: { 'idempotency-key': 'key-6' } });
    const secret = (await ask()).json['secret'] as string;
    expect(await ask()).toMatchObject({ status: 409, json: { code: 'idempotency_answer_gone' } });
    const sql = await host.sql();
    expect(JSON.stringify([...(await sql<object[]>`select * from idempotent_answers`)])).not.toContain(secret);
  });
});

describe('figures', () => {
  test('F-27 are for workloads and for whoever may read the service; strangers and others get nothing of them', async () => {
    const ask = (persona?: ReturnType<typeof as.user>) =>
      host.fetch('/v1/metrics', { ...(persona ? { persona } : {}), headers: { accept: 'text/plain' } });
    expect((await ask()).status).toBe(401);
    expect((await ask(reader)).status).toBe(403);
    expect((await ask(as.user('probe:metrics:read'))).status).toBe(200);
    const scraped = await host.fetch('/v1/metrics', { as: await host.workload('stat'), headers: { accept: 'text/plain' } });
    expect(scraped.status).toBe(200);
    expect(scraped.text).toMatch(/platform_request_duration_seconds_count\{service="probe",operation="kernel.metrics",status="4xx"\} \d/);
    expect(scraped.text).toMatch(/platform_refusals_total\{service="probe",code="unauthenticated"\} \d/);
    expect(scraped.text).toMatch(/^platform_probe_outbox_pending \d/m);
    expect(scraped.text).toMatch(/^nodejs_eventloop_lag_p99_seconds /m);
    expect((await host.fetch('/v1/metrics', { persona: as.user('probe:metrics:read') })).json).toMatchObject({
      outbox_pending: expect.any(Number),
      tasks_dead: expect.any(Number),
    });
  });

  test('of a contract stand beside them, as text and as JSON', async () => {
    await host.by(writer).remind({ body: { text: 'figures' } });
    const ask = (headers: Record<string, string>) => host.fetch('/v1/metrics', { persona: as.user('probe:metrics:read'), headers });
    const { text } = await ask({ accept: 'text/plain' });
    for (const line of [
      '# TYPE platform_probe_reminders_total counter',
      'platform_probe_reminders_total{outcome="queued"} 1',
      'platform_probe_open 3',
      'platform_probe_wait_seconds_bucket{le="5"} 1',
      'platform_probe_wait_seconds_sum 2',
    ])
      expect(text.split('\n')).toContain(line);
    expect((await ask({})).json).toMatchObject({
      'reminders_total{outcome="queued"}': 1,
      open: 3,
      wait_seconds_sum: 2,
      wait_seconds_count: 1,
    });
  });
});

test('G-K-02 a path parameter that does not fit its schema is 400 with its pointer before the handler is asked, at every door', async () => {
  const before = world.calls.length;
  const refused = { status: 400, code: 'validation_failed', errors: [{ pointer: '/params/thing_id', code: 'pattern' }] };
  for (const [method, path] of [
    ['GET', '/v1/things/a%20b'],
    ['DELETE', '/v1/things/a%20b'],
    ['POST', '/v1/things/a%20b/archive'],
  ] as const)
    expect((await host.fetch(path, { method, persona: writer })).json).toMatchObject(refused);
  const stream = { headers: { accept: 'text/event-stream' }, persona: writer };
  expect((await host.fetch('/v1/things/a%20b/ticks', stream)).json).toMatchObject(refused);
  expect((await host.fetch('/v1/things/a%20b')).status).toBe(401);
  expect(world.calls.slice(before)).toEqual([]);
  const { json } = await host.fetch('/openapi.json');
  const parameters = (json['paths'] as Record<string, { get: { parameters: object[] } }>)['/v1/things/{thing_id}']?.get.parameters;
  expect(parameters?.[0]).toEqual({
    name: 'thing_id',
    in: 'path',
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z0-9/-]{1,40}$' },
  });
});

describe('the version of a record', () => {
  const rename = (tag: string) =>
    host.fetch('/v1/things/t1', { method: 'PUT', persona: writer, headers: { 'if-match': tag }, body: '{"name":"x"}' });

  test('F-08 If-Match takes one of several versions or any; a weak, foreign or old one is 412 and names the version there is', async () => {
    for (const tag of ['"3"', '"2", "3"', '*']) expect((await rename(tag)).status).not.toBe(412);
    for (const tag of ['"2"', 'W/"3"', '"three"', '3']) {
      const answer = await rename(tag);
      expect([answer.status, answer.json['code'], answer.headers['etag']]).toEqual([412, 'precondition_failed', '"3"']);
    }
  });

  test('G-K-03 If-Match is never passed over: what has no version refuses it, and a change that did not compare it is a fault of ours', async () => {
    const send = (method: string, path: string, body?: string) =>
      host.fetch(path, { method, persona: writer, headers: { 'if-match': '"1"' }, ...(body ? { body } : {}) });
    const before = world.calls.length;
    for (const refused of [await send('POST', '/v1/things', '{"name":"unversioned"}'), await send('POST', '/v1/things/t1/archive')])
      expect([refused.status, refused.json['code']]).toEqual([412, 'precondition_unsupported']);
    expect(world.calls.slice(before)).toEqual([]);
    expect((await host.fetch('/v1/things/t1', { persona: reader, headers: { 'if-match': '"1"' } })).status).toBe(200);
    const forgotten = await send('DELETE', '/v1/things/t1');
    expect([forgotten.status, forgotten.json['code']]).toEqual([500, 'answer_invalid']);
  });
});

describe('the state of an environment', () => {
  test('F-13 routes of a vertical are about the own environment unless they say otherwise, those of the platform about none', () => {
    expect([manifestOf(probeOf('lab').contract, '1.0.0').env, manifestOf(plugin.contract, '1.0.0').env]).toEqual(['own', 'any']);
  });

  const write = (persona = writer) => host.fetch('/v1/things', { method: 'POST', persona, body: '{"name":"stated"}' });
  const say = (persona: { envId?: string | undefined }, state: string) =>
    host.process.kv.call('SET', `env-state:{${persona.envId}}`, state);

  test.each([
    ['suspended', 409, 'env_suspended'],
    ['archived', 409, 'env_archived'],
    ['absent', 403, 'target_denied'],
  ])('F-13 nothing changes in one that is %s; reading goes on, and the next request hears of every change', async (state, status, code) => {
    const person = as.userIn(newId(), 'probe:things:read', 'probe:things:write');
    expect((await write(person)).status).toBe(201);
    await say(person, state);
    expect(await write(person)).toMatchObject({ status, json: { code } });
    expect((await host.fetch('/v1/things', { persona: person })).status).toBe(200);
    await say(person, 'active');
    expect((await write(person)).status).toBe(201);
  });

  test('F-13 a workload of the platform goes on, one of a vertical does not', async () => {
    const env = newId();
    await say({ envId: env }, 'suspended');
    const as_ = async (vertical: string) => {
      const name = vertical === 'platform' ? 'func' : 'till';
      const persona = { ...as.machine(name, 'probe:things:write'), vertical };
      return host.fetch(`/v1/things?target_env_id=${env}`, {
        method: 'POST',
        persona,
        as: await host.workload(name),
        body: '{"name":"by-workload"}',
      });
    };
    expect((await as_('platform')).status).toBe(201);
    expect((await as_('retail')).status).toBe(409);
  });
});

describe('the stream door', () => {
  test('writes one frame per event and ends with its source', async () => {
    const answer = await host.fetch('/v1/ticks', {
      persona: reader,
      headers: { accept: 'text/event-stream', 'x-platform-correlation-id': 'sse-1' },
    });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/event-stream']);
    expect(answer.text).toBe('id: 1\nevent: tick\ndata: {"at":1}\n\ndata: {"correlationId":"sse-1","aborted":false}\n\n');
  });

  test('takes its token from the query only from an event source', async () => {
    const token = host.mint.token(reader, 'probe');
    expect((await host.fetch(`/v1/ticks?token=${token}`, { headers: { accept: 'text/event-stream' } })).status).toBe(200);
    expect((await host.fetch(`/v1/ticks?token=${token}`)).status).toBe(401);
  });

  test('refuses before its first byte as any request does', async () => {
    expect((await host.fetch('/v1/ticks')).json['code']).toBe('unauthenticated');
    expect((await host.fetch('/v1/ticks', { persona: as.user() })).json['code']).toBe('policy_denied');
  });
});

describe('the socket door', () => {
  const connect = (path: string, token?: string) => {
    const socket = new WebSocket(`wss://127.0.0.1:${host.process.port}${path}`, {
      ca: host.stores.authority.pq.files.rootCertificate,
      servername: 'probe.ops.sys.localhost',
      minVersion: 'TLSv1.3',
      ecdhCurve: 'X25519MLKEM768',
      headers: {
        host: 'probe.ops.sys.localhost',
        'x-platform-correlation-id': 'ws-1',
        ...(token ? { authorization: `Bearer ${token}` } : {}),
      },
    } as never);
    socket.on('error', () => undefined);
    return socket;
  };
  const refused = (path: string, token?: string) =>
    new Promise<{ status: number; code: unknown }>((resolve, reject) => {
      const socket = connect(path, token);
      socket.once('open', () => reject(new Error('it opened')));
      socket.on('error', () => undefined);
      socket.once('unexpected-response', (_request, response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, code: (JSON.parse(text) as { code: string }).code }));
      });
    });

  test('talks both ways once it is accepted', async () => {
    const socket = connect('/v1/talk', host.mint.token(reader, 'probe'));
    const received: unknown[] = [];
    const closed = new Promise<number>(resolve => socket.once('close', resolve));
    socket.on('message', data => {
      received.push(JSON.parse(String(data)));
      if (received.length === 1) socket.send('{"n":1}');
      else socket.close(1000);
    });
    expect(await closed).toBe(1000);
    expect(received).toEqual([{ hello: reader.id, correlationId: 'ws-1' }, { heard: { n: 1 } }]);
  });

  test('what is not JSON closes the connection with 1007', async () => {
    const socket = connect('/v1/talk', host.mint.token(reader, 'probe'));
    const closed = new Promise<number>(resolve => socket.once('close', resolve));
    socket.once('message', () => socket.send('not json'));
    expect(await closed).toBe(1007);
  });

  test('a refusal before it is accepted answers over HTTP, and nothing is upgraded', async () => {
    expect(await refused('/v1/talk')).toEqual({ status: 401, code: 'unauthenticated' });
    expect(await refused('/v1/talk', host.mint.token(as.user(), 'probe'))).toEqual({ status: 403, code: 'policy_denied' });
    expect(await refused('/v1/closed-talk', host.mint.token(reader, 'probe'))).toEqual({ status: 409, code: 'thing_taken' });
    expect(await refused('/v1/things', host.mint.token(reader, 'probe'))).toEqual({ status: 404, code: 'not_found' });
    const told = () =>
      host.logged.filter(({ msg, status }) => msg === 'request answered' && [401, 403, 409, 404].includes(status as number));
    expect(told().slice(-4)).toMatchObject([
      { operation: 'talk', status: 401 },
      { operation: 'talk', status: 403 },
      { operation: 'closedTalk', status: 409 },
      { operation: 'none', status: 404 },
    ]);
  });

  test('a client that breaks off before it is accepted harms nobody', async () => {
    const wire = netConnect(host.process.port, '127.0.0.1');
    const socket = tlsConnect(
      {
        socket: wire,
        servername: 'probe.ops.sys.localhost',
        ca: host.stores.authority.pq.files.rootCertificate,
        minVersion: 'TLSv1.3',
        ecdhCurve: 'X25519MLKEM768',
      },
      () =>
        socket.write(
          `GET /v1/slow-talk HTTP/1.1\r\n${HOST}connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n`,
        ),
    );
    socket.on('error', () => undefined);
    await world.entered.promise;
    wire.resetAndDestroy();
    await world.left.promise;
    expect((await host.fetch('/v1/greet')).status).toBe(200);
  });

  test('a plain request to a socket path says what to do', async () => {
    expect((await host.fetch('/v1/talk')).json['detail']).toBe('Connect with a WebSocket upgrade.');
  });
});
