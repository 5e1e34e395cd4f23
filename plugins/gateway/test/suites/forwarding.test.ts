import { beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import { APP, type AskOptions, type Browser, codeOf, ENV, type World } from '../fixtures/world.ts';

/** What goes through the gateway, and how it comes back. */
export function describeForwarding(given: () => World): void {
  describe('forwarding', () => {
    let world: World;
    let browser: Browser;
    beforeEach(async () => {
      world = given();
      browser = await world.signIn();
    });

    const get = (path: string, headers: Record<string, string> = {}, more: AskOptions = {}) =>
      world.ask('GET', path, { ...more, headers: { cookie: browser.cookie, ...headers } });
    const post = (path: string, more: AskOptions = {}) =>
      world.ask('POST', path, {
        body: '{}',
        ...more,
        headers: { ...browser.headers, 'content-type': 'application/json', 'content-length': '2', ...more.headers },
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
        expect(answer.headers.has('set-cookie')).toBe(false);
        // The connection to the gateway has one of its own.
        expect(answer.headers.get('keep-alive')).not.toBe('timeout=5');
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
        const whole = await post('/proxy/lending/v1/files', { body: Buffer.alloc(limit), headers: { 'content-length': String(limit) } });
        expect([whole.status, world.sent[0]?.body.length]).toEqual([200, limit]);
        const announced = await post('/proxy/lending/v1/files', { body: 'x', headers: { 'content-length': String(limit + 1) } });
        expect([announced.status, await codeOf(announced)]).toEqual([413, 'body_too_large']);
        const [before, lost] = [world.givenUp, await world.figure('backend_lost_total')];
        const chunked = Array.from({ length: 11 }, () => Buffer.alloc(1_048_576));
        const silent = await world.ask('POST', '/proxy/lending/v1/files', { body: chunked, headers: browser.headers });
        expect([silent.status, await codeOf(silent)]).toEqual([413, 'body_too_large']);
        await eventually(() => world.givenUp).toBe(before + 1);
        expect(await world.figure('backend_lost_total')).toBe(lost);
      });

      test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])(
        'GWY-030 GWY-078 %s goes to the service for who brings the cookie, and for nobody with a token of the own',
        async method => {
          const body = method === 'GET' ? {} : { body: '{"n":1}' };
          const bearer = { authorization: `Bearer ${world.identity.issued[0]}` };
          expect((await world.ask(method, '/proxy/sys/v1/loans/7?x=%20', { ...body, headers: bearer })).status).toBe(401);
          expect(world.sent).toEqual([]);
          expect(
            (
              await world.ask(method, '/proxy/sys/v1/loans/7?x=%20', {
                ...body,
                headers: { ...browser.headers, authorization: 'Bearer mine' },
              })
            ).status,
          ).toBe(200);
          expect(world.sent).toEqual([
            expect.objectContaining({ service: 'sys', method, path: '/v1/loans/7?x=%20', body: body.body ?? '' }),
          ]);
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
        world.backend = () => 'down';
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
        expect([answer.status, problem.code, problem.type]).toEqual([
          502,
          'backend_unresolved',
          'urn:platform:problem:bff:backend_unresolved',
        ]);
      });
    });

    describe('the log sink', () => {
      test('GWY-050 takes 16 KiB of JSON from anybody, and writes it into the log alone', async () => {
        const recorded = world.host.audits.length;
        const send = (body: string) => world.ask('POST', '/audit', { body });
        expect((await send('{"fault":"x"}')).status).toBe(204);
        expect((await send(`"${'x'.repeat(17_000)}"`)).status).toBe(413);
        expect((await send('{')).status).toBe(400);
        expect(world.host.logged).toContainEqual(expect.objectContaining({ report: { fault: 'x' } }));
        expect([world.host.audits.length, world.sent]).toEqual([recorded, []]);
      });
    });
  });
}
