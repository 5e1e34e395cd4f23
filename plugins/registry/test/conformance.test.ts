import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeConformance } from '@platform/testing';
import registry from '../src/plugin.ts';
import { auditKeyIn } from './fixtures/audit-key.ts';
import { Directory } from './fixtures/directory.ts';

describeConformance(registry, { stubs: { identity: new Directory().identity }, environment: auditKeyIn(mkdtempSync(join(tmpdir(), 'platform-registry-'))) });
