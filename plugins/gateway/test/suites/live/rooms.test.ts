import { SYSTEM } from '@platform/sdk';
import { beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import { PERSON } from '../../fixtures/fake-identity.ts';
import { type Browser, ENV, FILLER, type World } from '../../fixtures/world.ts';

const DESK = `bff:room:${SYSTEM.envId}:${SYSTEM.consoleAppId}:desk`;

/** Rooms of an application. */
export function describeRooms(given: () => World): void {
  describe('rooms', () => {
    let world: World;
    let browser: Browser;
    beforeEach(async () => {
      world = given();
      browser = await world.signIn();
    });
    /** Processes that hear the room `desk`. */
    const members = async () => ((await world.kv.call('PUBSUB', 'NUMSUB', DESK)) as unknown[])[1];

    test('GWY-046 what is said in one is heard by its members in every process, and by nobody else', async () => {
      const other = await world.another();
      const [ada, bob, eve] = [await world.listen(browser, []), await other.listen(browser, []), await other.listen(browser, [])];
      for (const [who, room] of [
        [ada, 'desk'],
        [bob, 'desk'],
        [eve, 'hall'],
      ] as const)
        who.say({ action: 'join', room });
      const channels = async () => ((await world.kv.call('PUBSUB', 'CHANNELS', 'bff:room:*')) as string[]).length;
      await eventually(members).toBe(2);
      await eventually(channels).toBe(2);
      ada.say({ action: 'message', room: 'desk', body: 'hello' });
      for (const who of [ada, bob])
        await eventually(() => who.received.at(-1)).toMatchObject({ type: 'chat:message', room: 'desk', from: PERSON, body: 'hello' });
      // What reached her process before she is pinged would have reached her.
      await other.heartbeat();
      await eventually(() => eve.types()).toContain('ping');
      expect(eve.types()).not.toContain('chat:message');
      ada.say({ action: 'leave', room: 'desk' });
      await eventually(members).toBe(1);
    });

    test('GWY-101 a slow member has 64 messages waiting, and hears how many were lost', async () => {
      world.beside.scopes.set(PERSON, ['sys:sys:admin']);
      const [ada, bob] = [await world.listen(browser, []), await world.listen(browser)];
      for (const who of [ada, bob]) {
        who.say({ action: 'join', room: 'desk' });
        // Messages of a page are done in their order.
        who.say({ action: 'subscribe', types: [] });
        await eventually(() => who.types().filter(type => type === 'subscribed').length).toBe(2);
      }
      expect(await members()).toBe(1);
      bob.stall();
      await world.hear('acme:lending:loan:filed', ENV, FILLER);
      for (let n = 0; n < 80; n++) ada.say({ action: 'message', room: 'desk', body: `${n}` });
      await eventually(() => ada.received.filter(({ type }) => type === 'chat:message').length).toBe(80);
      bob.resume();
      await eventually(() => bob.types()).toContain('lag');
      const heard = bob.received.filter(({ type }) => type === 'chat:message');
      // One was on its way already.
      expect(heard).toHaveLength(65);
      expect(bob.received.find(({ type }) => type === 'lag')).toMatchObject({ skipped: 15 });
    });
  });
}
