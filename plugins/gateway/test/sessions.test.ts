import { afterAll, beforeAll, beforeEach } from 'vitest';
import { World } from './fixtures/world.ts';
import { describeApps } from './suites/apps.test.ts';
import { describeSessions } from './suites/sessions.test.ts';
import { describeSignIn } from './suites/sign-in.test.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
}, 120_000);
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.fresh());

describeSignIn(() => world);
describeSessions(() => world);
describeApps(() => world);
