import { as } from '@platform/testing';
import { describe, expect, test } from 'vitest';
import { HOST, RequestedProbe } from './fixtures/requested-probe.ts';

const asked = RequestedProbe.use();
const { reader, world, writer } = asked;

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
    const answer = await asked.raw(text.includes('connection:') ? text : text.replace(/\r\n\r\n/, '\r\nconnection: close\r\n\r\n'));
    expect(answer.status, answer.text).toBe(status);
    expect(answer.text).toContain(word);
  });

  test('a hundred headers are still read', async () => {
    const { status } = await asked.raw(
      `GET /v1/greet HTTP/1.1\r\n${HOST}connection: close\r\n${Array.from({ length: 98 }, (_, index) => `x-a${index}: 1\r\n`).join(
        '',
      )}\r\n`,
    );
    expect(status).toBe(200);
  });

  test('another host than ours is misdirected', async () => {
    const answer = await asked.host.fetch('/v1/greet', { host: 'elsewhere.example.org' });
    expect([answer.status, answer.json['code']]).toEqual([421, 'misdirected']);
  });
});

describe('a body', () => {
  const send = (body: string, headers: Record<string, string> = {}) =>
    asked.host.fetch('/v1/things', { method: 'POST', persona: writer, body, headers });

  test('of more bytes than the route takes is 413, whether its length is said or not', async () => {
    const said = await send(JSON.stringify({ name: 'x'.repeat(2_000) }));
    expect([said.status, said.json['code'], said.headers['connection']]).toEqual([413, 'body_too_large', 'close']);
    const body = `{"name":"${'x'.repeat(2_000)}"}`;
    const chunked = await asked.raw(
      `POST /v1/things HTTP/1.1\r\n${HOST}authorization: Bearer ${asked.host.mint.token(writer, 'probe')}\r\n` +
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
    const full = await asked.host.fetch('/v1/things/7/archive', { method: 'POST', persona: writer, body: '{"a":1}' });
    expect([full.status, full.json['code']]).toEqual([400, 'validation_failed']);
    expect((await asked.host.fetch('/v1/things/7/archive', { method: 'POST', persona: writer, body: '{}' })).status).toBe(204);
  });

  test('is read only after the gate: a stranger learns nothing of it', async () => {
    expect((await asked.host.fetch('/v1/things', { method: 'POST', body: '{"name":' })).status).toBe(401);
    expect((await asked.host.fetch('/v1/things', { method: 'POST', persona: reader, body: '{"name":' })).status).toBe(403);
  });
});

describe('a path and its query', () => {
  test('a path nobody declared is 404, and a method it does not take 405 with those it does', async () => {
    expect((await asked.host.fetch('/v1/nothing')).json['code']).toBe('not_found');
    const answer = await asked.host.fetch('/v1/things', { method: 'DELETE' });
    expect([answer.status, answer.json['code']]).toEqual([405, 'method_not_allowed']);
    expect(String(answer.headers['allow']).split(', ').sort()).toEqual(['GET', 'HEAD', 'POST']);
  });

  test('bad percent-encoding is 400; good encoding reaches the handler decoded', async () => {
    const bad = await asked.host.fetch('/v1/things/%E0%A4%A');
    expect([bad.status, bad.json['code']]).toEqual([400, 'malformed']);
    expect((await asked.host.fetch('/v1/things/a%2Fb', { persona: reader })).json['thing_id']).toBe('a/b');
    expect((await asked.host.fetch('/v1/tagged/a/b%20c')).json).toEqual({ rest: 'a/b c' });
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
    const answer = await asked.host.fetch(path, { method, persona: writer, ...(body === undefined ? {} : { body }) });
    expect([answer.status, answer.json['code']]).toEqual([400, 'validation_failed']);
    expect((answer.json['errors'] as { pointer: string }[]).map(({ pointer }) => pointer)).toEqual(pointers);
  });

  test('F-19 what only looks like U+0000 is text like any other', async () => {
    const answer = await asked.host.fetch('/v1/things/one', {
      method: 'PUT',
      persona: writer,
      body: JSON.stringify({ name: 'C:\\u0000' }),
    });
    expect([answer.status, answer.json['name']]).toEqual([200, 'C:\\u0000']);
    const whole = await asked.host.fetch('/v1/things/one', { method: 'PUT', persona: writer, body: '{"name":"\\ud83d\\ude00"}' });
    expect([whole.status, whole.json['name']]).toEqual([200, '😀']);
    expect((await asked.host.fetch('/v1/tagged/%2500')).json).toEqual({ rest: '%00' });
  });

  test('F-32 a target that is no id is nobody’s environment, whoever asks', async () => {
    for (const persona of [reader, as.user('probe:things:read', 'sys:sys:admin'), as.machine('worker', 'probe:things:read')]) {
      for (const target of ['zzz', '%27', '']) {
        const answer = await asked.host.fetch(`/v1/targeted?target_env_id=${target}`, { persona });
        expect([target, answer.status, answer.json['code']]).toEqual([target, 403, 'target_denied']);
      }
    }
  });

  test('numbers and truth values are read from their text; what does not read is refused by name', async () => {
    expect((await asked.host.fetch('/v1/things?limit=7&fresh=true&kind=small', { persona: reader })).status).toBe(200);
    expect(world.calls.at(-1)).toBe('list {"limit":7,"fresh":true,"kind":"small"}');
    for (const [query, pointer] of [
      ['limit=many', '/query/limit'],
      ['limit=0', '/query/limit'],
      ['limit=201', '/query/limit'],
      ['fresh=maybe', '/query/fresh'],
      ['wrong=1', '/query/wrong'],
      ['limit=1&limit=2', '/query/limit'],
    ]) {
      const answer = await asked.host.fetch(`/v1/things?${query}`, { persona: reader });
      expect([query, answer.status]).toEqual([query, 400]);
      expect((answer.json['errors'] as { pointer: string }[]).map(({ pointer }) => pointer)).toContain(pointer);
    }
  });

  test('the target is required where it is, may come by header, and must be one', async () => {
    expect((await asked.host.fetch('/v1/targeted', { persona: reader })).json['code']).toBe('target_env_required');
    expect((await asked.host.fetch(`/v1/targeted?target_env_id=${reader.envId}`, { persona: reader })).json['target']).toBe(reader.envId);
    expect(
      (await asked.host.fetch('/v1/targeted', { persona: reader, headers: { 'x-bff-target-env-id': reader.envId } })).json['target'],
    ).toBe(reader.envId);
    expect(
      (
        await asked.host.fetch(`/v1/targeted?target_env_id=${reader.envId}`, {
          persona: reader,
          headers: { 'x-bff-target-env-id': 'other' },
        })
      ).json['code'],
    ).toBe('target_mismatch');
    const other = await asked.host.fetch('/v1/targeted?target_env_id=another', { persona: reader });
    expect([other.status, other.json['code']]).toEqual([403, 'target_denied']);
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
    expect((await asked.host.fetch(path, { method, persona: writer })).json).toMatchObject(refused);
  const stream = { headers: { accept: 'text/event-stream' }, persona: writer };
  expect((await asked.host.fetch('/v1/things/a%20b/ticks', stream)).json).toMatchObject(refused);
  expect((await asked.host.fetch('/v1/things/a%20b')).status).toBe(401);
  expect(world.calls.slice(before)).toEqual([]);
  const { json } = await asked.host.fetch('/openapi.json');
  const parameters = (json['paths'] as Record<string, { get: { parameters: object[] } }>)['/v1/things/{thing_id}']?.get.parameters;
  expect(parameters?.[0]).toEqual({
    name: 'thing_id',
    in: 'path',
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z0-9/-]{1,40}$' },
  });
});

describe('an answer', () => {
  test('of success carries status, entity tag and correlation id; of failure a problem that says only what was meant to be said', async () => {
    const made = await asked.host.fetch('/v1/things', {
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
    const [event] = await asked.host.events('platform:probe:thing:created');
    expect(event).toMatchObject({
      correlation_id: 'click-1',
      env_id: writer.envId,
      payload: { thing_id: made.json['thing_id'], name: 'one' },
    });
    const taken = await asked.host.fetch('/v1/things', { method: 'POST', persona: writer, body: JSON.stringify({ name: 'taken' }) });
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
    const answer = await asked.host.fetch(path);
    expect([answer.status, answer.json['code']]).toEqual([500, code]);
    expect(answer.text).not.toContain('secret of the inside');
    expect(answer.json).not.toHaveProperty('detail');
  });

  test.each([
    ['/v1/foreign', 'platform:auth:user:created'],
    ['/v1/misshapen', 'platform:probe:thing:created'],
  ])('an event the service does not own, or a payload that does not fit, fails its transaction (%s)', async (path, name) => {
    const before = asked.host.bus.filter(({ event_type }) => event_type === name).length;
    expect((await asked.host.fetch(path, { method: 'POST' })).status).toBe(500);
    expect(asked.host.bus.filter(({ event_type }) => event_type === name)).toHaveLength(before);
  });

  test('a correlation id that is none is replaced, and the one of the request goes on to other services', async () => {
    const made = await asked.host.fetch('/v1/greet', { headers: { 'x-platform-correlation-id': 'has spaces' } });
    expect(made.headers['x-platform-correlation-id']).toMatch(/^probe-[0-9a-f-]{36}$/);
    expect((await asked.host.fetch('/v1/asks', { headers: { 'x-platform-correlation-id': 'click-2' } })).json).toEqual({
      correlation_id: 'click-2',
    });
  });
});

test('health reports the build that the process was started with', async () => {
  const { status, json } = await asked.host.fetch('/v1/health');
  expect([status, json['build'], json['version'], json['service']]).toEqual([200, 'test', '0.0.0-test.test', 'probe']);
});

describe('figures', () => {
  test('F-27 are for workloads and for whoever may read the service; strangers and others get nothing of them', async () => {
    const ask = (persona?: ReturnType<typeof as.user>) =>
      asked.host.fetch('/v1/metrics', { ...(persona ? { persona } : {}), headers: { accept: 'text/plain' } });
    expect((await ask()).status).toBe(401);
    expect((await ask(reader)).status).toBe(403);
    expect((await ask(as.user('probe:metrics:read'))).status).toBe(200);
    const scraped = await asked.host.fetch('/v1/metrics', { as: await asked.host.workload('stat'), headers: { accept: 'text/plain' } });
    expect(scraped.status).toBe(200);
    expect(scraped.text).toMatch(/platform_request_duration_seconds_count\{service="probe",operation="kernel.metrics",status="4xx"\} \d/);
    expect(scraped.text).toMatch(/platform_refusals_total\{service="probe",code="unauthenticated"\} \d/);
    expect(scraped.text).toMatch(/^platform_probe_outbox_pending \d/m);
    expect(scraped.text).toMatch(/^nodejs_eventloop_lag_p99_seconds /m);
    expect((await asked.host.fetch('/v1/metrics', { persona: as.user('probe:metrics:read') })).json).toMatchObject({
      outbox_pending: expect.any(Number),
      tasks_dead: expect.any(Number),
    });
  });

  test('of a contract stand beside them, as text and as JSON', async () => {
    await asked.host.by(writer).remind({ body: { text: 'figures' } });
    const ask = (headers: Record<string, string>) => asked.host.fetch('/v1/metrics', { persona: as.user('probe:metrics:read'), headers });
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
