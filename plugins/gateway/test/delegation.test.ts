import { afterAll, beforeAll, beforeEach } from 'vitest';
import { World } from './fixtures/world.ts';
import { describeActions } from './suites/actions.test.ts';
import { describeDelegations } from './suites/delegations.test.ts';
import { describeDelegator } from './suites/delegator.test.ts';
import { describeDirectory } from './suites/directory.test.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
}, 120_000);
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.fresh());

describeActions(() => world);
describeDelegations(() => world);
describeDelegator(() => world);
describeDirectory(() => world);
