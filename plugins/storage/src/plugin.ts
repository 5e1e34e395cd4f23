import { definePlugin } from '@platform/sdk';
import { storage } from '../contract/index.ts';
import { servicesOf } from './services.ts';

export default definePlugin(storage, {
  migrations: new URL('../migrations/', import.meta.url),

  setup(ctx) {
    const { incoming, objects, upkeep, inspection } = servicesOf(ctx);
    return {
      routes: {
        putObject: request => objects.put(request),
        objects: exchange => objects.answer(exchange),
        listObjects: ({ query }) => inspection.list(query),
        usage: () => inspection.usage(),
        usageByService: async () => ({ items: await inspection.services() }),
        verifyObjects: request => inspection.verify(request),
      },
      jobs: {
        reclaim: signal => upkeep.reclaim(signal),
        sweep: signal => upkeep.sweep(signal),
        tidy: () => incoming.tidy(Date.now()),
      },
      metrics: () => ({ transfers: objects.transfers }),
    };
  },
});
