import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeConformance } from '@platform/testing';
import notification from '../src/plugin.ts';
import { keyIn, registryOf, gatewayOf } from './fixtures/world.ts';

describeConformance(notification, {
  stubs: { registry: registryOf(), gateway: gatewayOf() },
  environment: keyIn(mkdtempSync(join(tmpdir(), 'platform-post-'))),
});
