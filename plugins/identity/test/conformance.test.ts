import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeConformance } from '@platform/testing';
import plugin from '../src/plugin.ts';
import { World } from './fixtures/world.ts';

describeConformance(
  plugin,
  { environment: World.environment(mkdtempSync(join(tmpdir(), 'platform-identity-'))) },
  {
    ownsAccess: true,
    unlisted: {
      listClients: 'Clients are registered by a token of their own or by the app store; the suites show them.',
      listSessions: 'Sessions are begun by people who sign in; the suites show them.',
      listRecoveries: 'Recoveries are begun by people who lost their second factor; the suites show them.',
    },
  },
);
