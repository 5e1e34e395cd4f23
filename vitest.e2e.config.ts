import { defineConfig } from 'vitest/config';

/** Pages of one service, the same in every process mode: what is tried there is tried once, as are the hosted pages. */
const ONCE = ['app-store', 'audit', 'directory'].map(name => `e2e/journeys/${name}-journey.test.ts`);

export default defineConfig({
  test: {
    include: process.env['PLATFORM_E2E_MODE'] === 'split' ? ['e2e/journeys/*.test.ts'] : ['e2e/{journeys,sign-in}/*.test.ts'],
    exclude: ['**/node_modules/**', ...(process.env['PLATFORM_E2E_MODE'] === 'split' ? ONCE : [])],
    // When a test fails, it says what was on the screens and in the logs.
    setupFiles: ['e2e/fixtures/evidence.ts'],
    pool: 'forks',
    execArgv: ['--disable-warning=ExperimentalWarning'],
    maxWorkers: 1,
    bail: 1,
    testTimeout: 60_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 15_000, interval: 100 } },
  },
});
