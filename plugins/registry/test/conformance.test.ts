import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeConformance } from '@platform/testing';
import registry from '../src/plugin.ts';
import { Directory } from './fixtures/directory.ts';
import { World } from './fixtures/world.ts';

describeConformance(
  registry,
  {
    stubs: { identity: new Directory().identity },
    environment: World.environment(mkdtempSync(join(tmpdir(), 'platform-registry-'))),
  },
  {
    unlisted: {
      listUnfinished: 'Nothing was broken off here; the suite of unfinished creations shows it.',
      applicationRows: 'Applications stand in environments of organizations, and the page is read in the platform’s own here.',
      domainRows: 'Domains belong to organizations, and the page is read in the platform’s own environment here.',
      whoCan: 'It asks for one scope, and the identity service of this test holds no people.',
      whatCan: 'It asks for one person, and the identity service of this test holds no people.',
    },
  },
);
