import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeConformance } from '@platform/testing';
import notification from '../src/plugin.ts';
import { keyIn, registryOf } from './fixtures/world.ts';

describeConformance(notification, { stubs: { registry: registryOf() }, environment: keyIn(mkdtempSync(join(tmpdir(), 'platform-post-'))) });
