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
        mappings: async () => ({ items: mappings.cached(), next_cursor: null }),
        backends: async () => {
          const services = (ctx.catalog.manifests() as readonly { id: string }[]).map(({ id }) => id);
          const found = await Promise.all(services.map(async service => (await ctx.backends.addresses(service)).map(address => ({ service, ...address }))));
          return { items: found.flat() };
        },
      },
      ready: async () => {
        ctx.own(
          await ctx.kv.subscribe('platform:sys:domain:changed', message => {
            const { hostnames } = JSON.parse(message) as { hostnames?: string[] };
            mappings.forget(hostnames);
          }),
        );
        await edge.listen(ctx.config.httpsPort, ctx.config.address);
        ctx.own(edge);
      },
    };
  },
});
