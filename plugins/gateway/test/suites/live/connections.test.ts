import { beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import { PERSON } from '../../fixtures/fake-identity.ts';
import type { Page } from '../../fixtures/page.ts';
import { type Browser, codeOf, ENV, eventsOf, FILLER, type World } from '../../fixtures/world.ts';

/** WebSockets of pages: who gets one, how many there are, and how each ends. */
export function describeLiveConnections(given: () => World): void {
  describe('live connections', () => {
    let world: World;
    let browser: Browser;
    beforeEach(async () => {
      world = given();
      browser = await world.signIn();
    });

    describe('an upgrade', () => {
      test.each([
        ['another origin', { origin: 'https://evil.sys.localhost:8443' }, 'origin_denied'],
        ['no session', { headers: { cookie: '' } }, 'session_required'],
        ['another application', { tenant: { appInstanceId: ENV } }, 'app_binding_mismatch'],
      ])('GWY-046 with %s is refused before it happens', async (_, more, code) => {
        await expect(world.page({ headers: { cookie: browser.cookie }, ...more })).rejects.toMatchObject({ code });
      });
    });

    describe('F-17 many connections', () => {
      test('F-17 of one session are bounded, and those of another are not', async () => {
        const few = await world.another({ PLATFORM_BFF_STREAMS_PER_SESSION: '2' });
        const held = [await few.listen(browser), await few.listen(browser)];
        await expect(few.listen(browser)).rejects.toMatchObject({ status: 429, code: 'too_many_streams' });
        const stream = await few.ask('GET', '/subscribe?types=*', { headers: { cookie: browser.cookie } });
        expect([stream.status, await codeOf(stream)]).toEqual([429, 'too_many_streams']);
        await few.listen(await world.signIn());
        await held[0]?.close();
        // The place is free once the gateway has seen it.
        const again = () =>
          few.listen(browser).then(
            () => 'open',
            ({ code }) => code,
          );
        await eventually(again).toBe('open');
      });

      test('F-17 are written to a few at a time, with other work between', async () => {
        const all = await Promise.all(Array.from({ length: 200 }, () => world.listen(browser)));
        const pinged = () => all.filter(page => page.types().includes('ping')).length;
        // What other work sees that has waited until the first page is told.
        const between = Promise.race(all.map(page => page.hears('ping'))).then(() => new Promise(setImmediate).then(pinged));
        await world.heartbeat();
        await eventually(pinged).toBe(200);
        expect(await between).toBeLessThan(200);
      });
    });

    describe('a page', () => {
      test('GWY-094 GWY-096 a slow page loses events and is told which stretch, a silent one is let go', async () => {
        world.beside.scopes.set(PERSON, ['sys:sys:admin']);
        const page = await world.listen(browser);
        page.stall();
        await world.hear('acme:lending:loan:filed', ENV, FILLER);
        for (let n = 0; n < 300; n++) await world.hear('acme:lending:loan:decided', ENV, { n });
        page.resume();
        await eventually(() => page.types()).toContain('lag');
        const { skipped, from, to } = page.received.at(-1) as unknown as { skipped: number; from: string; to: string };
        expect(eventsOf(page, 'acme:lending:loan:decided').length + skipped).toBe(300);
        expect(skipped).toBeGreaterThan(0);
        expect(from <= to).toBe(true);
        const pings = () => page.types().filter(type => type === 'ping').length;
        await world.heartbeat();
        await eventually(pings).toBe(1);
        page.say({ action: 'pong' });
        page.say({ action: 'unsubscribe', types: [] });
        await eventually(() => page.types().at(-1)).toBe('subscribed');
        for (let beat = 0; beat < 2; beat++) await world.heartbeat();
        // A close would have come before the ping of the same beat.
        await eventually(pings).toBe(3);
        expect(page.closedWith).toBeUndefined();
        await world.heartbeat();
        await eventually(() => page.closedWith).toBe(1001);
      });

      test('what a page says wrong is answered, and the socket stays', async () => {
        const page = await world.listen(browser);
        for (const message of [
          5,
          { action: 'dance' },
          { action: 'subscribe', types: ['a b'] },
          { action: 'join', room: 'a/b' },
          { action: 'message', room: 'r', body: 'x' },
        ])
          page.say(message);
        await eventually(() => page.received.filter(({ type }) => type === 'error').map(({ code }) => code)).toEqual([
          'unknown_action',
          'unknown_action',
          'malformed',
          'bad_room',
          'not_joined',
        ]);
        await world.heartbeat();
        await eventually(() => page.types().at(-1)).toBe('ping');
        expect(page.closedWith).toBeUndefined();
      });
    });

    describe('the end of a session', () => {
      test('GWY-006 GWY-088 closes its sockets with 4401 in every process, and its streams with a last word', async () => {
        const other = await world.another();
        const pages: Page[] = [await world.listen(browser), await other.listen(browser)];
        const stream = await world.ask('GET', '/subscribe', { headers: { cookie: browser.cookie } });
        await world.identitySessionEnded();
        await eventually(() => pages.map(({ closedWith }) => closedWith)).toEqual([4401, 4401]);
        expect(await stream.text()).toContain('event: platform:bff:session:expired');
      });

      test('that nobody heard of is found by the heartbeat', async () => {
        const page = await world.listen(browser);
        await world.kv.call('FLUSHALL');
        await world.heartbeat();
        await eventually(() => page.closedWith).toBe(4401);
      });
    });
  });
}
