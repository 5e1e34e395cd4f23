import { describeConformance } from '@platform/testing';
import plugin from '../src/plugin.ts';

const noModule = 'A module lies in object storage, which is away here; the suites show it.';
describeConformance(
  plugin,
  { stubs: { registry: { listServices: async ({ params }) => ({ env_id: params.env_id, services: [] }) } } },
  { unlisted: { listModules: noModule, listExecutions: noModule, listDeadLetters: noModule } },
);
