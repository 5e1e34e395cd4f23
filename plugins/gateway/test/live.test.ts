import { afterAll, beforeAll, beforeEach } from 'vitest';
import { World } from './fixtures/world.ts';
import { describeEventStreams } from './suites/live/event-streams.test.ts';
import { describeLiveConnections } from './suites/live/connections.test.ts';
import { describeLiveEvents } from './suites/live/events.test.ts';
import { describeLostStore } from './suites/live/lost-store.test.ts';
import { describePush } from './suites/live/push.test.ts';
import { describeRooms } from './suites/live/rooms.test.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
}, 120_000);
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.fresh());

describeLiveConnections(() => world);
describeLiveEvents(() => world);
describeRooms(() => world);
describeEventStreams(() => world);
describePush(() => world);
describeLostStore(() => world);
