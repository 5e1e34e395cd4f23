import { SYSTEM } from '@platform/sdk';
import type { Page } from 'playwright';
import { beforeAll, describe, test } from 'vitest';
import { ConsoleVisit, MODE } from '../fixtures/console-visit.ts';
import { enterAsFirstAdministrator } from '../fixtures/first-administrator.ts';
import { shoot } from '../fixtures/shots.ts';

describe(`the traffic of the platform, ${MODE}`, () => {
  const visit = ConsoleVisit.ofSuite();
  const { platform } = visit;
  let ada: Page;
  beforeAll(() => {
    ada = visit.page;
  });

  test('STA-004 CON-038 services tell of their requests, and the page shows them when the minute is over', { timeout: 150_000 }, async () => {
    await enterAsFirstAdministrator(ada, platform);
    await ada.goto(`${platform.ready.console}/#/stat/traffic?env=${SYSTEM.envId}`);
    await ada.getByRole('heading', { name: 'Traffic', level: 1 }).waitFor();
    // The page is not reloaded: the snapshot of the minute moves it.
    await ada.getByRole('row').filter({ hasText: 'sys' }).waitFor({ timeout: 130_000 });
    await shoot(ada, 'stat-traffic');
  });
});
