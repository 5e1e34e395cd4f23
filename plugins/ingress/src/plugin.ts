import { certificateAuthority } from '@platform/certificate-authority/contract';
import { registry } from '@platform/registry/contract';
import { definePlugin } from '@platform/sdk';
import { ingress } from '../contract/index.ts';
import { EdgeCertificates } from './edge-certificates.ts';
import { EdgeListener } from './edge-listener.ts';
import { HostMappings } from './host-mappings.ts';

export default definePlugin(ingress, {
  uses: { authority: certificateAuthority, registry },
  setup(ctx) {
    const mappings = new HostMappings(ctx);
    const edge = new EdgeListener(ctx, mappings, new EdgeCertificates(ctx));
    return {
      routes: {
        edge: () => undefined,
        mappings: async () => ({ items: mappings.known(), next_cursor: null }),
        backends: async () => {
          const services = ctx.catalog.manifests().map(({ id }) => id);
          const found = await Promise.all(services.map(async service => (await ctx.backends.addresses(service)).map(address => ({ service, ...address }))));
          return { items: found.flat() };
        },
      },
      metrics: () => edge.figures,
      drain: () => edge.leave(),
      ready: async () => {
        ctx.own(await ctx.kv.subscribe('platform:sys:domain:changed', message => mappings.forget(hostnamesOf(message))));
        await edge.listen(ctx.config.httpsPort, ctx.config.address);
        ctx.own(edge);
      },
    };
  },
});

/** The hosts a change is about; `undefined` stands for all, and so does a message nobody can read. */
function hostnamesOf(message: string): readonly string[] | undefined {
  try {
    const { hostnames } = JSON.parse(message) as { hostnames?: unknown };
    return Array.isArray(hostnames) ? hostnames.map(String) : undefined;
  } catch {
    return undefined;
  }
}
