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
describeConformance(plugin, { stores, processes: box });
