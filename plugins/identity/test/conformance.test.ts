import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeConformance } from '@platform/testing';
import plugin from '../src/plugin.ts';
import { World } from './fixtures/world.ts';

describeConformance(plugin, { environment: World.environment(mkdtempSync(join(tmpdir(), 'platform-identity-'))) }, { ownsAccess: true });
