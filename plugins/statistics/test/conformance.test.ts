import { expect } from 'vitest';
import { as, describeConformance } from '@platform/testing';
import plugin from '../src/plugin.ts';

describeConformance(
  plugin,
  {},
  {
    rows: async (host, env_id) => {
      const by = host.by(as.machine('shop', 'stat:properties:write', 'stat:measure'));
      const { property_id } = await by.provision({ body: { env_id, kind: 'listing', ref_id: 'shop', name: 'Shop' } });
      await by.measure({ body: { property_id, metric: 'visits', value: 1 } });
      await host.clock.leap('2h');
      await expect
        .poll(async () => (await (await host.sql())<object[]>`select 1 from aggregates where property_id = ${property_id}`).length)
        .toBeGreaterThan(0);
      return { listAggregates: { property_id } };
    },
    unlisted: { trafficByService: 'Traffic is what other services flush into the store; the suite shows it.' },
  },
);
