import { defineConfig } from 'vitest/config';

/**
 * Every journey goes once, and the first in both process modes: what crosses services goes with a process for each, the pages of single
 * services and the hosted ones with all in one.
 */
const SPLIT_ONLY = ['bus', 'fleet', 'staff', 'tenants'];
const files = (names: readonly string[]) => names.map(name => `e2e/journeys/${name}-journey.test.ts`);
const split = process.env['PLATFORM_E2E_MODE'] === 'split';

export default defineConfig({
  test: {
    include: split ? files(['first', ...SPLIT_ONLY]) : ['e2e/{journeys,sign-in}/*.test.ts'],
    exclude: ['**/node_modules/**', ...(split ? [] : files(SPLIT_ONLY))],
    // When a test fails, it says what was on the screens and in the logs.
    setupFiles: ['e2e/fixtures/browser/evidence.ts'],
    pool: 'forks',
    execArgv: ['--disable-warning=ExperimentalWarning'],
    maxWorkers: 1,
    bail: 1,
    testTimeout: 60_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 15_000, interval: 100 } },
  },
});
