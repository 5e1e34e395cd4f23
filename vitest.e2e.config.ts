import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['e2e/**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    pool: 'forks',
    execArgv: ['--disable-warning=ExperimentalWarning'],
    maxWorkers: 1,
    bail: 1,
    testTimeout: 60_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 15_000, interval: 100 } },
  },
});
