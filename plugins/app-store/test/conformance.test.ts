import { describeConformance } from '@platform/testing';
import plugin from '../src/plugin.ts';

describeConformance(
  plugin,
  {
    stubs: { workflow: { registerHandler: async () => ({}) as never }, scheduler: { putSchedule: async () => ({}) as never } },
  },
  {
    unlisted: Object.fromEntries(
      ['listingRows', 'listingVersions', 'listingRoles', 'listingImages', 'listInstances', 'instanceAccess', 'instanceDomains'].map(
        source => [
          source,
          'A listing belongs to an organization, which the registry alone knows, and it is away here; the suites show it.',
        ],
      ),
    ),
  },
);
