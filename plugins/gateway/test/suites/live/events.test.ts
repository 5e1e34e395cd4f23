import { SYSTEM } from '@platform/sdk';
import { beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import { PERSON } from '../../fixtures/fake-identity.ts';
import { type Browser, ENV, eventsOf, ORG, type World } from '../../fixtures/world.ts';

/** Which events reach a page, and which it is told of having missed. */
export function describeLiveEvents(given: () => World): void {
  describe('live events', () => {
    let world: World;
    let browser: Browser;
    beforeEach(async () => {
      world = given();
      browser = await world.signIn();
    });
    const grant = async (...groups: string[]) => {
      world.beside.groups.set(PERSON, groups);
      await world.accessChanged(PERSON);
    };

    describe('events on a socket', () => {
      test('GWY-077 come for the types that were asked for, until they are not', async () => {
        await grant(`platform:env:${ENV}:viewers`);
        const page = await world.listen(browser, ['platform:sys:env:*', 'acme:lending:loan:decided']);
        const send = () =>
          Promise.all(
            ['platform:sys:env:updated', 'acme:lending:loan:decided', 'platform:app:instance:updated'].map(type =>
              world.hear(type, ENV, { n: 1 }),
            ),
          );
        await send();
        await eventually(() => eventsOf(page).map(({ type }) => type)).toEqual(['platform:sys:env:updated', 'acme:lending:loan:decided']);
        page.say({ action: 'unsubscribe', types: ['platform:sys:env:*'] });
        await eventually(() => page.received.at(-1)).toEqual({ type: 'subscribed', types: ['acme:lending:loan:decided'] });
        await send();
        await eventually(() => eventsOf(page).length).toBe(3);
        expect(eventsOf(page)[2]).toMatchObject({
          type: 'acme:lending:loan:decided',
          env_id: ENV,
          payload: { n: 1 },
          created_at: expect.stringMatching(/Z$/),
        });
      });

      test("GWY-089 GWY-090 are named by the convention, and carry no publisher's token", async () => {
        world.beside.scopes.set(PERSON, ['sys:sys:admin']);
        const page = await world.listen(browser);
        await world.hear('not-a-name', ENV, {});
        await world.hear('platform:sys:env:updated', ENV, { a: 1, publisher_id_token: 'secret' });
        await eventually(() => eventsOf(page).length).toBe(1);
        expect(eventsOf(page)[0]?.['payload']).toEqual({ a: 1 });
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
        world.beside.scopes.set(PERSON, scopes);
        await grant(...groups);
        const page = await world.listen(browser);
        await world.hear(type, envId, payload);
        await world.hear('platform:sys:vertical:registered', SYSTEM.envId, { last: true });
        await eventually(() => eventsOf(page).at(-1)?.['payload']).toEqual({ last: true });
        expect(eventsOf(page)).toHaveLength(seen ? 2 : 1);
      });

      test('GWY-093 a rollup of the statistics reaches who asked for it and may see it', async () => {
        await grant(`platform:env:${ENV}:viewers`);
        world.beside.scopes.set(PERSON, ['stat:traffic:read']);
        const [asked, other] = [
          await world.listen(browser, ['platform:stat:traffic:snapshot']),
          await world.listen(browser, ['platform:sys:env:*']),
        ];
        await world.kv.call('PUBLISH', 'stat:rollups:minute', 'no rollup');
        await world.kv.call('PUBLISH', 'stat:rollups:minute', JSON.stringify({ env_id: ENV, requests: 7 }));
        await eventually(() => eventsOf(asked)).toMatchObject([
          { type: 'platform:stat:traffic:snapshot', env_id: ENV, payload: { requests: 7 } },
        ]);
        expect(eventsOf(other)).toEqual([]);
      });

      test('access that was withdrawn counts for the next event', async () => {
        await grant(`platform:env:${ENV}:viewers`);
        const page = await world.listen(browser);
        await world.hear('acme:lending:loan:decided', ENV, { n: 1 });
        await grant();
        await world.hear('acme:lending:loan:decided', ENV, { n: 2 });
        await world.hear('platform:sys:vertical:registered', SYSTEM.envId, { n: 3 });
        await eventually(() => eventsOf(page).map(({ payload }) => (payload as { n: number }).n)).toEqual([1, 3]);
      });

      test('when access cannot be decided nothing is sent, and the page hears that it missed something', async () => {
        const page = await world.listen(browser);
        world.beside.groupsAway = true;
        await world.hear('acme:lending:loan:decided', ENV, {});
        await eventually(() => page.received.at(-1)).toMatchObject({ type: 'lag', skipped: 1 });
        expect(eventsOf(page)).toEqual([]);
      });
    });

    describe('families that verticals bring', () => {
      test("GWY-089 are heard beside those of the platform's contracts, which nobody names by hand", async () => {
        await eventually(() => world.host.families).toEqual(expect.arrayContaining(['acme', 'identity', 'stat-pipeline', 'sys']));
        expect(world.host.families.filter(family => ['audit', 'bus'].includes(family))).toEqual([]);
        await grant(`platform:env:${ENV}:viewers`);
        const page = await world.listen(browser);
        await world.hear('platform:stat:property:created', ENV, { n: 1 }, 'stat-pipeline');
        await eventually(() => eventsOf(page)).toMatchObject([{ type: 'platform:stat:property:created' }]);
      });

      test('are heard while they are there, and not any more after', async () => {
        const before = world.host.families;
        const heard = (...families: string[]) => eventually(() => world.host.families).toEqual([...before, ...families].sort());
        await grant(`platform:env:${ENV}:viewers`);
        const page = await world.listen(browser);
        await world.registered({ stream_families: ['acme-loans', 'sys', 'audit'] });
        await heard('acme-loans');
        await world.hear('acme:lending:loan:decided', ENV, { n: 1, publisher_id_token: 'x' }, 'acme-loans');
        await eventually(() => eventsOf(page)).toMatchObject([{ type: 'acme:lending:loan:decided', payload: { n: 1 } }]);
        expect(eventsOf(page)[0]?.['payload']).toEqual({ n: 1 });
        // The other service says when this one's life was looked at.
        const desk = { service: 'desk', stream_families: ['acme-notes'] };
        await world.registered({ life: 'draining', stream_families: ['acme-loans'] }, desk);
        await heard('acme-loans', 'acme-notes');
        await world.registered({ life: 'gone', stream_families: ['acme-loans'] }, { ...desk, life: 'gone' });
        await heard();
      });
    });

    describe('H-22 events that the gateway itself may have missed', () => {
      test('H-22 before it heard a family are a lag to whoever listens, and nothing to who has asked for no type', async () => {
        const before = world.host.families;
        const [asked, mute] = [await world.listen(browser), await world.listen(browser, [])];
        const lags = () => asked.types().filter(type => type === 'lag').length;
        /** Whatever was to be said is said by then. */
        const pinged = async (times: number) => {
          await world.heartbeat();
          for (const page of [asked, mute]) await eventually(() => page.types().filter(type => type === 'ping').length).toBe(times);
        };
        world.host.busAway = true;
        await world.registered({ stream_families: ['acme-loans'] });
        await eventually(() => world.host.families).toContain('acme-loans');
        await pinged(1);
        expect(lags()).toBe(0);
        world.host.busAway = false;
        await world.host.clock.advance('5s');
        await eventually(lags).toBe(1);
        world.host.loseEvents('sys');
        await eventually(lags).toBe(2);
        await pinged(2);
        expect(mute.types()).not.toContain('lag');
        await world.registered();
        await eventually(() => world.host.families).toEqual(before);
      });
    });
  });
}
