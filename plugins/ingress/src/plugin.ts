import { certificateAuthority } from '@platform/certificate-authority/contract';
import { registry } from '@platform/registry/contract';
import { definePlugin } from '@platform/sdk';
import { ingress } from '../contract/index.ts';
import { Edge } from './edge.ts';

export default definePlugin(ingress, {
  uses: { authority: certificateAuthority, registry },
  setup(ctx) {
    const edge = new Edge(ctx);
    return {
      routes: {
        edge: () => undefined,
        challenges: () => undefined,
        management: () => undefined,
        mappings: async () => ({ items: edge.mappings.known(), next_cursor: null }),
        backends: async () => ({ items: await edge.backends() }),
        figures: async () => edge.figures,
        traffic: async () => ({ items: edge.windows() }),
        settings: ({ env }) => edge.settings.seen(env),
        putSettings: request => edge.settings.put(request),
        findings: async () => ({ items: [...edge.findings.latest()], next_cursor: null }),
      },
      metrics: () => edge.figures,
      health: () => edge.health(),
      drain: () => edge.leave(),
      ready: () => edge.start(),
    };
  },
});
