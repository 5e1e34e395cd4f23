import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{kernel,plugins,sdk,console,signin,scripts,e2e/verticals}/**/*.test.ts'],
    // The parts of a file that share its booted services are run by that file.
    exclude: ['**/node_modules/**', '**/dist/**', '**/test/suites/**'],
    // What a file starts ends with it.
    setupFiles: ['kernel/storage/fixtures/test-ground.ts'],
    // Real servers start in most files; two cores carry two of them.
    maxWorkers: 2,
    pool: 'forks',
    execArgv: ['--disable-warning=ExperimentalWarning'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
  },
});
