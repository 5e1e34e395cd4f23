import { SYSTEM } from '@platform/sdk';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { kernelProblem } from '@platform/kernel/base/kernel-problem';
import { eventually } from '@platform/kernel/storage/fixtures/eventually';
import { APP, type AskOptions, type Browser, codeOf, ENV, Store, World } from './fixtures/world.ts';

let store: Store;
let world: World;
let browser: Browser;
beforeAll(async () => {
  store = await Store.start();
}, 60_000);
afterAll(() => store[Symbol.asyncDispose]());
beforeEach(async () => {
  world = await World.start(store);
  browser = await world.signIn();
});
afterEach(() => world[Symbol.asyncDispose]());

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const get = (path: string, headers: Record<string, string> = {}, more: AskOptions = {}) =>
  world.ask('GET', path, { ...more, headers: { cookie: browser.cookie, ...headers } });
const post = (path: string, more: AskOptions = {}) =>
  world.ask('POST', path, {
    body: '{}',
    ...more,
    headers: { ...browser.headers, 'content-type': 'application/json', 'content-length': '2', ...more.headers },
  });
const targeted = (path: string, env = ENV) => get(path, { 'x-bff-target-env-id': env });

describe('the order of checks', () => {
  const elsewhere = { tenant: { envId: SYSTEM.envId, appInstanceId: ENV } };
  test('GWY-051 GWY-097 session before binding, binding before origin, origin before token', async () => {
    const wrong = { ...elsewhere, origin: 'https://evil.sys.localhost:8443', headers: { cookie: browser.cookie } };
    expect(await codeOf(await world.ask('POST', '/proxy/sys/v1/o', { ...wrong, headers: {} }))).toBe('session_required');
    expect(await codeOf(await world.ask('POST', '/proxy/sys/v1/o', wrong))).toBe('app_binding_mismatch');
    expect(await codeOf(await world.ask('POST', '/proxy/sys/v1/o', { ...wrong, tenant: { appInstanceId: SYSTEM.consoleAppId } }))).toBe(
      'origin_denied',
    );
    expect(await codeOf(await world.ask('POST', '/proxy/sys/v1/o', { headers: { cookie: browser.cookie } }))).toBe('csrf_mismatch');
    expect((await post('/proxy/sys/v1/o')).status).toBe(200);
    expect(world.sent).toHaveLength(1);
  });

  test('F-15 a wrong CSRF token is refused before any token is fetched and before the list of services is asked', async () => {
    world.offsetMs = 3_600_000;
    const calls = world.identity.calls.length;
    for (const path of ['/proxy/sys/v1/o', '/proxy/lending/v1/loans', '/proxy/bff/v1/x', '/proxy/auth/v1/sign-in']) {
      const answer = await post(path, { headers: { 'x-bff-csrf': 'wrong', 'x-bff-target-env-id': ENV } });
      expect([path, answer.status, await codeOf(answer)]).toEqual([path, 403, 'csrf_mismatch']);
    }
    expect(world.identity.calls.length).toBe(calls);
    expect((await post('/proxy/bff/v1/x')).status).toBe(403);
    expect((await post('/proxy/sys/v1/o')).status).toBe(200);
    expect(world.identity.calls.length).toBe(calls + 1);
  });

  test('GWY-052 a session of another application is 401, and so is none where there is one', async () => {
    for (const tenant of [{ appInstanceId: ENV }, { envId: SYSTEM.envId }]) {
      const answer = await get('/proxy/sys/v1/o', {}, { tenant });
      expect([answer.status, await codeOf(answer)]).toEqual([401, 'app_binding_mismatch']);
    }
  });

  test.each([
    ['another CSRF token', { headers: { 'x-bff-csrf': 'x' } }, 'csrf_mismatch'],
    ['a sibling host of the platform', { origin: 'https://shop.ops.sys.localhost:8443' }, 'origin_denied'],
    ["the gateway's own host", { origin: 'https://bff.console.ops.sys.localhost:8443' }, 'origin_denied'],
    ['another port', { origin: 'https://console.ops.sys.localhost' }, 'origin_denied'],
    ['no origin', { origin: null }, 'origin_denied'],
  ])('GWY-053 a mutation with %s is 403', async (_, more, code) => {
    const answer = await post('/proxy/sys/v1/o', more);
    expect([answer.status, await codeOf(answer)]).toEqual([403, code]);
    expect(world.sent).toEqual([]);
  });

  test.each([
    ['POST', '/proxy/sys/v1/o'],
    ['PUT', '/proxy/sys/v1/o'],
    ['PATCH', '/proxy/sys/v1/o'],
    ['DELETE', '/proxy/sys/v1/o'],
    ['POST', '/auth/sign-out'],
    ['POST', '/auth/refresh'],
    ['DELETE', '/v1/auth/sessions'],
    ['DELETE', `/v1/auth/sessions/${ENV}`],
    ['POST', '/subscribe'],
    ['DELETE', '/subscribe'],
    ['POST', '/subscribe/push'],
    ['POST', '/bff/action/sys:x'],
    ['POST', '/delegate/start'],
    ['POST', '/delegate/send-link'],
    ['POST', '/delegate/scim/users'],
    ['DELETE', `/delegate/scim/users/${ENV}`],
  ])('D-05 %s %s that says neither Origin nor Sec-Fetch-Site is refused, whatever else it brings', async (method, path) => {
    const answer = await world.ask(method, path, { origin: null, headers: browser.headers });
    expect([answer.status, await codeOf(answer)]).toEqual([403, 'origin_denied']);
    expect([world.sent, (await get('/auth/session')).status]).toEqual([[], 200]);
  });

  test('GWY-054 without the CSRF setting the origin is still asked', async () => {
    const loose = await world.sibling(store, { csrf: false });
    const send = (origin: string) => loose.ask('POST', '/proxy/sys/v1/o', { origin, headers: { cookie: browser.cookie } });
    expect([(await send(APP)).status, (await send('https://evil.localhost')).status]).toEqual([200, 403]);
    await loose[Symbol.asyncDispose]();
  });
});

describe('what every answer says of itself', () => {
  test('F-28 a refusal for want of a session says how to bring a credential, a wrong method which ones there are, an Accept that admits nothing what there is', async () => {
    for (const path of ['/auth/session', '/v1/auth/sessions', '/proxy/sys/v1/o', '/subscribe']) {
      const nobody = await world.ask('GET', path);
      expect([path, nobody.status, nobody.headers.get('www-authenticate')]).toEqual([
        path,
        401,
        'Bearer realm="platform", error="invalid_token"',
      ]);
    }
    const wrong = await world.ask('PUT', '/auth/session', { headers: browser.headers });
    expect([wrong.status, await codeOf(wrong), wrong.headers.get('allow')]).toEqual([405, 'method_not_allowed', 'GET, OPTIONS']);
    const picture = await get('/auth/session', { accept: 'image/png' });
    expect([picture.status, await codeOf(picture)]).toEqual([406, 'not_acceptable']);
    expect((await get('/auth/session', { accept: 'text/html, */*;q=0.1' })).status).toBe(200);
  });

  test('F-34 nobody may take it for another type, JSON and refusals alike', async () => {
    const answers = [
      await get('/auth/session'),
      await get('/v1/auth/sessions'),
      await get('/proxy/sys/v1/o'),
      await world.ask('GET', '/auth/session'),
      await post('/proxy/sys/v1/o', { origin: null }),
    ];
    expect(answers.map(({ headers }) => headers.get('x-content-type-options'))).toEqual(answers.map(() => 'nosniff'));
  });
});

describe('what travels', () => {
  test('GWY-063 GWY-064 GWY-079 only listed headers go up, with the bearer and the correlation id', async () => {
    await get('/proxy/sys/v1/loans?a=%20b&a=c%2Fd', {
      accept: 'application/json',
      'if-none-match': '"1"',
      'x-platform-correlation-id': 'dsh-1',
      'x-platform-env-id': ENV,
      'x-platform-app-id': ENV,
      'x-forwarded-for': '1.2.3.4',
      authorization: 'Bearer stolen',
      'x-custom': 'x',
    });
    expect(world.sent).toEqual([
      {
        service: 'sys',
        path: '/v1/loans?a=%20b&a=c%2Fd',
        method: 'GET',
        headers: {
          accept: 'application/json',
          'if-none-match': '"1"',
          authorization: `Bearer ${world.identity.issued[0]}`,
          'x-platform-correlation-id': 'dsh-1',
        },
        body: '',
        as: undefined,
      },
    ]);
  });

  test("GWY-073 the answer comes back as it is, without cookies and connection headers, for the application's own origin", async () => {
    world.backend = () =>
      new Response('{"x":1}', {
        status: 418,
        headers: {
          'content-type': 'application/json',
          etag: '"7"',
          'set-cookie': 'evil=1',
          'keep-alive': 'timeout=5',
          'access-control-allow-origin': '*',
          'x-own': 'y',
        },
      });
    const answer = await get('/proxy/lending/v1/loans');
    expect([answer.status, await answer.text()]).toEqual([418, '{"x":1}']);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      etag: '"7"',
      'x-own': 'y',
      'access-control-allow-origin': APP,
      'access-control-allow-credentials': 'true',
      vary: 'Origin',
    });
    for (const gone of ['set-cookie', 'keep-alive']) expect(answer.headers.has(gone)).toBe(false);
    expect(
      (await get('/proxy/lending/v1/loans', {}, { origin: 'https://evil.localhost' })).headers.has('access-control-allow-origin'),
    ).toBe(false);
  });

  test('a page that a service answers cannot act as the gateway', async () => {
    world.backend = () => new Response('<script>1</script>', { headers: { 'content-type': 'text/html' } });
    expect((await get('/proxy/lending/v1/x')).headers.get('content-security-policy')).toContain('sandbox');
  });

  test('a preflight is answered for the application alone', async () => {
    const asked = await world.ask('OPTIONS', '/proxy/sys/v1/o');
    expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([204, APP]);
    expect(asked.headers.get('access-control-allow-headers')).toContain('x-bff-csrf');
    expect((await world.ask('OPTIONS', '/proxy/sys/v1/o', { origin: 'https://evil.localhost' })).status).toBe(403);
    expect(world.sent).toEqual([]);
  });

  test('a refusal can be read by the application too', async () => {
    const refused = await world.ask('GET', '/proxy/sys/v1/o');
    expect([refused.status, refused.headers.get('access-control-allow-origin'), refused.headers.get('content-type')]).toEqual([
      401,
      APP,
      'application/problem+json; charset=utf-8',
    ]);
  });

  test('an answer streams: its beginning is there before its end', async () => {
    let finish = () => {};
    world.backend = () => {
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const writer = writable.getWriter();
      void writer.write(new TextEncoder().encode('first'));
      finish = () => void writer.close();
      return new Response(readable);
    };
    const answer = await get('/proxy/lending/v1/stream');
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('first');
    finish();
    expect((await reader.read()).done).toBe(true);
  });

  test('GWY-099 a body of 10 MB goes through, one byte more is 413, announced or not, and no backend is blamed', async () => {
    const limit = 10_485_760;
    const whole = await post('/proxy/lending/v1/files', { body: new Uint8Array(limit), headers: { 'content-length': String(limit) } });
    expect([whole.status, world.sent[0]?.body.length]).toEqual([200, limit]);
    const announced = await post('/proxy/lending/v1/files', { body: 'x', headers: { 'content-length': String(limit + 1) } });
    expect([announced.status, await codeOf(announced)]).toEqual([413, 'body_too_large']);
    let aborted = false;
    const chunked = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let part = 0; part < 11; part++) controller.enqueue(new Uint8Array(1_048_576));
        controller.close();
      },
    });
    const fetch = world.ctx.backends.fetch;
    (world.ctx.backends as { fetch: typeof fetch }).fetch = (...input) => {
      input[2].signal?.addEventListener('abort', () => (aborted = true));
      return fetch(...input);
    };
    const silent = await world.ask('POST', '/proxy/lending/v1/files', { body: chunked, headers: browser.headers });
    expect([silent.status, await codeOf(silent), aborted]).toEqual([413, 'body_too_large', true]);
  });

  test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])(
    'GWY-030 GWY-078 %s goes to the service for who brings the cookie, and for nobody with a token of the own',
    async method => {
      const body = method === 'GET' ? {} : { body: '{"n":1}' };
      const bearer = { authorization: `Bearer ${world.identity.issued[0]}` };
      expect((await world.ask(method, '/proxy/sys/v1/loans/7?x=%20', { ...body, headers: bearer })).status).toBe(401);
      expect(world.sent).toEqual([]);
      expect(
        (await world.ask(method, '/proxy/sys/v1/loans/7?x=%20', { ...body, headers: { ...browser.headers, authorization: 'Bearer mine' } }))
          .status,
      ).toBe(200);
      expect(world.sent).toEqual([expect.objectContaining({ service: 'sys', method, path: '/v1/loans/7?x=%20', body: body.body ?? '' })]);
      expect(world.sent[0]?.headers['authorization']).toBe(`Bearer ${world.identity.issued[0]}`);
    },
  );

  test('GWY-074 a 401 of the service passes through, and the session stays', async () => {
    world.backend = () => Response.json({ code: 'unauthenticated' }, { status: 401 });
    const answer = await get('/proxy/lending/v1/loans');
    expect([answer.status, await codeOf(answer)]).toEqual([401, 'unauthenticated']);
    expect((await get('/auth/session')).status).toBe(200);
  });

  test('GWY-075 a service that does not answer is 502, in words, and the session stays', async () => {
    world.backend = () => {
      throw kernelProblem('backend_unreachable', { detail: 'lending could not be reached.', cause: new Error('ECONNRESET') });
    };
    const answer = await get('/proxy/lending/v1/loans');
    expect([answer.status, await answer.json()]).toEqual([
      502,
      expect.objectContaining({ code: 'backend_unreachable', detail: 'lending could not be reached.' }),
    ]);
    expect((await get('/auth/session')).status).toBe(200);
  });

  test('GWY-076 a service that nobody runs is 502', async () => {
    const answer = await get('/proxy/nowhere/v1/x');
    const problem = (await answer.json()) as { code: string; type: string };
    expect([answer.status, problem.code, problem.type]).toEqual([502, 'backend_unresolved', 'urn:platform:problem:bff:backend_unresolved']);
  });
});

describe('what is out of reach', () => {
  test.each([
    ['auth', '/mtls/oauth/token'],
    ['auth', '/oauth/token'],
    ['auth', '/%6Dtls/oauth/token'],
    ['auth', '/v1/sign-in'],
    ['acme', '/v1/certificates/fetch'],
    ['bff', '/v1/x'],
    ['UPPER', '/v1/x'],
  ])("whatever %s%s gives to the gateway's own certificate", async (service, path) => {
    const answer = await post(`/proxy/${service}${path}`);
    expect([answer.status, await codeOf(answer)]).toEqual([403, 'not_whitelisted']);
    expect(world.sent).toEqual([]);
  });

  test('ordinary paths of the same services are in reach', async () => {
    for (const path of ['/proxy/auth/v1/admin/users', '/proxy/acme/v1/acme/certificates', '/proxy/sys/v1/scopes/catalog'])
      expect((await get(path)).status).toBe(200);
    expect((await post('/proxy/auth/v1/admin/sessions/1/revoke')).status).toBe(200);
  });
});

describe('another environment', () => {
  test('GWY-058 GWY-059 GWY-060 is entered with a token of the delegator for this person, environment and service, fetched once', async () => {
    await Promise.all([targeted('/proxy/lending/v1/loans'), targeted('/proxy/lending/v1/loans')]);
    await targeted('/proxy/lending/v1/loans');
    const [exchange, ...more] = world.identity.grants(EXCHANGE);
    expect(more).toEqual([]);
    expect(exchange).toMatchObject({
      path: '/mtls/oauth/token',
      as: 'delegator',
      form: {
        client_id: 'bff-delegator',
        actor_token: world.identity.issued[0],
        subject_token: world.identity.issued[3],
        audience: 'lending',
        resource: `urn:platform:env:${ENV}`,
      },
    });
    expect(exchange?.form).not.toHaveProperty('scope');
    expect(new Set(world.sent.map(({ headers }) => headers['authorization']))).toEqual(new Set([`Bearer ${world.identity.issued[4]}`]));
    expect(world.sent[0]?.headers['x-bff-target-env-id']).toBe(ENV);
    await targeted('/proxy/sys/v1/env');
    expect(world.identity.grants(EXCHANGE)).toHaveLength(2);
    expect(world.identity.grants('client_credentials')).toHaveLength(1);
  });

  test("F-22 GWY-058 GWY-059 the session's own is entered the same way when it is named", async () => {
    for (const service of ['sys', 'lending']) await targeted(`/proxy/${service}/v1/o`, SYSTEM.envId);
    expect(world.identity.grants(EXCHANGE).map(({ form }) => [form['audience'], form['resource']])).toEqual(
      ['sys', 'lending'].map(service => [service, `urn:platform:env:${SYSTEM.envId}`]),
    );
    expect(world.sent.map(({ headers }) => headers['authorization'])).not.toContain(`Bearer ${world.identity.issued[0]}`);
  });

  test('F-22 a service of a vertical never sees the token that every service of the platform takes', async () => {
    expect((await get('/proxy/lending/v1/loans')).status).toBe(200);
    expect(world.identity.grants(EXCHANGE).map(({ form }) => [form['audience'], form['resource']])).toEqual([
      ['lending', `urn:platform:env:${SYSTEM.envId}`],
    ]);
    expect(world.sent[0]?.headers['authorization']).toBe(`Bearer ${world.identity.issued.at(-1)}`);
    expect(world.sent[0]?.headers).not.toHaveProperty('x-bff-target-env-id');
    await get('/proxy/sys/v1/o');
    expect(world.sent[1]?.headers['authorization']).toBe(`Bearer ${world.identity.issued[0]}`);
  });

  test.each([
    ['GWY-080 a refusal is 403', { status: 403, error: 'invalid_target' }, [403, 'target_denied']],
    ['a refusal in the form of RFC 6749 is 403', { status: 400, error: 'invalid_target' }, [403, 'target_denied']],
    ['GWY-081 an identity service that fails is 502', { status: 503 }, [502, 'identity_unavailable']],
    ['GWY-081 an identity service that is away is 502', 'down', [502, 'identity_unavailable']],
  ] as const)('%s', async (_, refusal, expected) => {
    world.identity.refusals.set(EXCHANGE, refusal);
    const answer = await targeted('/proxy/lending/v1/loans');
    expect([answer.status, await codeOf(answer)]).toEqual(expected);
    // GWY-082
    expect(world.sent).toEqual([]);
  });

  test('a delegator whose token is no longer known gets a new one', async () => {
    await targeted('/proxy/lending/v1/loans');
    world.identity.refusals.set(EXCHANGE, { status: 400, error: 'invalid_grant' });
    expect((await targeted('/proxy/sys/v1/o')).status).toBe(403);
    expect(world.identity.grants('client_credentials')).toHaveLength(2);
  });

  test('a change of access makes the next call ask again', async () => {
    await targeted('/proxy/lending/v1/loans');
    await world.behaviour.on.accessChanged({ payload: { subject_ids: [] } });
    await targeted('/proxy/lending/v1/loans');
    expect(world.identity.grants(EXCHANGE)).toHaveLength(2);
  });

  test('header and query must name the same one', async () => {
    const answer = await targeted(`/proxy/lending/v1/loans?target_env_id=${SYSTEM.envId}`);
    expect([answer.status, await codeOf(answer)]).toEqual([400, 'target_mismatch']);
    expect((await targeted(`/proxy/lending/v1/loans?target_env_id=${ENV}`)).status).toBe(200);
  });

  test('an organization is only named, and the environment wins over it', async () => {
    await get('/proxy/sys/v1/o', { 'x-bff-target-org-id': ENV });
    await get('/proxy/sys/v1/o', { 'x-bff-target-org-id': ENV, 'x-bff-target-env-id': ENV });
    expect(world.sent.map(({ path }) => path)).toEqual([`/v1/o?target_org_id=${ENV}`, '/v1/o']);
    expect(world.identity.grants(EXCHANGE)).toHaveLength(1);
  });
});

describe('a service that an environment switched off', () => {
  test('is 403 there, and open again as soon as the registry says so on either way', async () => {
    world.disabled.add('lending');
    const refused = await targeted('/proxy/lending/v1/loans');
    expect([refused.status, await codeOf(refused)]).toEqual([403, 'service_disabled']);
    expect(world.identity.grants(EXCHANGE)).toEqual([]);
    expect((await get('/proxy/lending/v1/loans')).status).toBe(200);
    world.disabled.clear();
    expect((await targeted('/proxy/lending/v1/loans')).status).toBe(403);
    await world.ctx.kv.call('PUBLISH', 'platform:sys:domain:changed', JSON.stringify({ scope: 'env', env_id: ENV }));
    await eventually(async () => (await targeted('/proxy/lending/v1/loans')).status).toBe(200);
    world.disabled.add('lending');
    await world.hear('platform:sys:service:updated', ENV, { env_id: ENV, service: 'lending' });
    expect((await targeted('/proxy/lending/v1/loans')).status).toBe(403);
  });
});

describe('the log sink', () => {
  test('GWY-050 takes 16 KiB of JSON from anybody', async () => {
    const send = (body: string) => world.ask('POST', '/audit', { body });
    expect((await send('{"fault":"x"}')).status).toBe(204);
    expect((await send(`"${'x'.repeat(17_000)}"`)).status).toBe(413);
    expect((await send('{')).status).toBe(400);
    expect(world.logged).toContainEqual(expect.objectContaining({ report: { fault: 'x' } }));
  });
});
