import { expect, test } from 'vitest';
import { holds, isThere, metered, plain, readSuite, SpecWorld } from './fixtures/spec-suite.ts';

test.runIf(isThere)('FUN-003 every script of the specification’s suite sees the same of a metered module as of a plain one', () => {
  const { scripts, files } = readSuite();
  const differences: string[] = [];
  let [seen, held] = [0, 0];
  for (const [name, commands] of scripts) {
    const worlds = [new SpecWorld(name, files, plain), new SpecWorld(name, files, metered)] as const;
    for (const command of commands) {
      const [one, other] = worlds.map(world => world.run(command));
      if (one === '') continue;
      seen += 1;
      if (command.action && holds(command, one as string)) held += 1;
      if (one !== other) differences.push(`${name}:${command.line} ${command.type} ${one} | ${other}`);
    }
  }
  expect(differences).toEqual([]);
  // The suite is there, and the plain engine passes it: a comparison of two failures proves nothing.
  expect([seen > 60_000, held > 58_100]).toEqual([true, true]);
});
test.skipIf(isThere)('the specification’s suite is not on this machine (../shared/data/wasm-testsuite.tar.gz)', () => undefined);
