import { afterAll } from 'vitest';
import { describeConformance, openTestStores } from '@platform/testing';
import plugin from '../src/plugin.ts';
import { MachineBox, SELF, service } from './fixtures/machine-box.ts';

const stores = await openTestStores();
const box = await MachineBox.open([SELF, service('acme', 2)], stores.stores.keyValueUrl);
afterAll(async () => {
  await box.close();
  await stores[Symbol.asyncDispose]();
});
const quiet = 'Nothing was given up, upgraded or asked for on this machine; the suites show it.';
describeConformance(
  plugin,
  { stores, processes: box },
  {
    unlisted: {
      machines: 'A machine is listed with its first sample, three seconds after its start.',
      alerts: quiet,
      pending: quiet,
      postMortems: quiet,
      upgradeStatus: quiet,
    },
  },
);
