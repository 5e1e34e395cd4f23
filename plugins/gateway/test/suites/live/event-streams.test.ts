import { beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import { PERSON } from '../../fixtures/fake-identity.ts';
import { type Browser, codeOf, ENV, ORG, type World } from '../../fixtures/world.ts';

/** The frames of an event stream, one after the other. */
async function* framesOf(response: Response): AsyncGenerator<string, void, undefined> {
  let text = '';
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    const frames = text.split('\n\n');
    text = frames.pop() ?? '';
    for (const frame of frames) yield `${frame}\n\n`;
  }
}

/** Live events as server-sent events. */
export function describeEventStreams(given: () => World): void {
  describe('events as a stream', () => {
    let world: World;
    let browser: Browser;
    beforeEach(async () => {
      world = given();
      browser = await world.signIn();
    });

    test('GWY-042 GWY-044 begins with its id, carries events, and is steered and ended by the page', async () => {
      world.beside.scopes.set(PERSON, ['sys:sys:admin']);
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
      await world.heartbeat();
      const frames = framesOf(opened);
      const next = async () => (await frames.next()).value;
      expect(await next()).toBe(`event: ready\ndata: {"subscription_id":"${id}"}\n\n`);
      expect(await next()).toMatch(
        /^id: [\w-]+\nevent: acme:lending:loan:decided\ndata: \{"type":"acme:lending:loan:decided","payload":\{"loan_id":"loan-1"\}/,
      );
      expect(await next()).toBe(': heartbeat\n\n');
      expect((await world.ask('DELETE', '/subscribe', { headers: browser.headers })).status).toBe(204);
      expect((await frames.next()).done).toBe(true);
    });

    test('GWY-043 without one there is nothing to steer: 409', async () => {
      const answer = await world.ask('POST', '/subscribe', { headers: browser.headers, body: '{"types":[]}' });
      expect([answer.status, await codeOf(answer)]).toEqual([409, 'no_live_stream']);
    });

    test('GWY-042 GWY-043 GWY-044 is for a session of this very application', async () => {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const body = method === 'POST' ? { body: '{"types":[]}' } : {};
        const nobody = await world.ask(method, '/subscribe', { ...body, headers: {} });
        const elsewhere = await world.ask(method, '/subscribe', { ...body, headers: browser.headers, tenant: { appInstanceId: ENV } });
        expect([method, nobody.status, await codeOf(nobody)]).toEqual([method, 401, 'session_required']);
        expect([method, elsewhere.status, await codeOf(elsewhere)]).toEqual([method, 401, 'app_binding_mismatch']);
      }
    });

    test('one that nobody will read takes no place: Accept does not admit it, or only its head is asked for', async () => {
      const first = await world.ask('GET', '/subscribe', { headers: { cookie: browser.cookie } });
      const refused = await world.ask('GET', '/subscribe', { headers: { cookie: browser.cookie, accept: 'image/png' } });
      expect([refused.status, await codeOf(refused)]).toEqual([406, 'not_acceptable']);
      const head = await world.ask('HEAD', '/subscribe', { headers: { cookie: browser.cookie } });
      expect([head.status, head.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
      expect(await world.figure('live_streams')).toBe(1);
      await world.heartbeat();
      const frames = framesOf(first);
      expect((await frames.next()).value).toContain('event: ready');
      expect((await frames.next()).value).toBe(': heartbeat\n\n');
      expect((await world.ask('DELETE', '/subscribe', { headers: browser.headers })).status).toBe(204);
      await eventually(() => world.figure('live_streams')).toBe(0);
    });

    test('a second one takes the place of the first, and another site cannot open one', async () => {
      const open = () => world.figure('live_streams');
      const first = await world.ask('GET', '/subscribe', { headers: { cookie: browser.cookie } });
      expect((await world.ask('GET', '/subscribe', { headers: { cookie: browser.cookie }, origin: 'https://evil.localhost' })).status).toBe(
        403,
      );
      const gone = new AbortController();
      await world.ask('GET', '/subscribe', { headers: { cookie: browser.cookie }, signal: gone.signal });
      // Nothing but its beginning.
      expect(await first.text()).toMatch(/^event: ready\ndata: \{"subscription_id":"[\w-]+"\}\n\n$/);
      await eventually(open).toBe(1);
      gone.abort();
      await eventually(open).toBe(0);
      expect((await world.ask('DELETE', '/subscribe', { headers: browser.headers })).status).toBe(409);
    });
  });
}
