import { as, describeConformance } from '@platform/testing';
import plugin from '../src/plugin.ts';

describeConformance(
  plugin,
  {},
  {
    rows: async host => {
      const persona = as.machine('shop', 'storage:objects:write');
      const { status } = await host.fetch('/v1/objects/shop/one.txt', { method: 'PUT', persona, body: Buffer.from('one') });
      if (status !== 201) throw new Error(`it was not stored: ${status}`);
    },
  },
);
