import { definePlugin } from '@platform/sdk';
import { statistics } from '../contract/index.ts';
import { forget } from './forgetting.ts';
import { Measurements } from './measurements.ts';
import { Properties } from './properties.ts';
import { Traffic } from './traffic.ts';

export default definePlugin(statistics, {
  migrations: new URL('../migrations/', import.meta.url),

  setup(ctx) {
    const properties = new Properties(ctx);
    const measurements = new Measurements(ctx, properties);
    const traffic = new Traffic(ctx);
    return {
      routes: {
        provision: ({ body }) => properties.provision(body),
        removeProperty: ({ params }) => properties.remove(params.property_id),
        measure: ({ body }) => measurements.record(body),
        listProperties: ({ query, env }) => properties.list(env, query),
        getProperty: ({ params, env }) => properties.get(env, params.property_id),
        listAggregates: ({ params, query, env }) => measurements.aggregates(env, params.property_id, query),
        traffic: () => traffic.figures(),
        trafficByService: () => traffic.byService(),
      },
      jobs: {
        sumUp: signal => measurements.sumUp(signal),
        rollUp: signal => traffic.rollUp(signal),
        forget: signal => forget(ctx, signal),
      },
      ready: () => traffic.listen(),
    };
  },
});
