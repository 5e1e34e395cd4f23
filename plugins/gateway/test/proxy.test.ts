import { afterAll, beforeAll, beforeEach } from 'vitest';
import { World } from './fixtures/world.ts';
import { describeEnvironments } from './suites/environments.test.ts';
import { describeForwarding } from './suites/forwarding.test.ts';
import { describeProxyChecks } from './suites/proxy-checks.test.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
}, 120_000);
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.fresh());

describeProxyChecks(() => world);
describeForwarding(() => world);
describeEnvironments(() => world);
