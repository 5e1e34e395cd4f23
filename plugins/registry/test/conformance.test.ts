import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeConformance } from '@platform/testing';
import registry from '../src/plugin.ts';
import { Directory } from './fixtures/directory.ts';
import { World } from './fixtures/world.ts';

describeConformance(registry, {
  stubs: { identity: new Directory().identity },
  environment: World.environment(mkdtempSync(join(tmpdir(), 'platform-registry-'))),
});
