import { AppInstances } from '../apps/app-instances.ts';
import { Bindings } from '../apps/bindings.ts';
import { CustomDomains } from '../apps/custom-domains.ts';
import { DomainRecheck } from '../apps/domain-recheck.ts';
import { HostIndex } from '../resolver/host-index.ts';
import { HostLookup } from '../resolver/host-lookup.ts';
import { Resolver } from '../resolver/resolver.ts';
import type { Ctx } from '../context.ts';
import type { GroundParts } from './ground-parts.ts';

/** Instances of applications, their domains, and which of all a name leads to. */
export function applicationParts(ctx: Ctx, { access, audit, changes, enablement, labels, proof, verticals }: GroundParts) {
  const apps = new AppInstances(ctx, { access, audit, changes, verticals, labels });
  return {
    apps,
    bindings: new Bindings(ctx, { access, audit, apps }),
    domains: new CustomDomains(ctx, { apps, audit, proof }),
    recheck: new DomainRecheck(ctx, { apps, audit, proof }),
    resolver: new Resolver(ctx, { hosts: new HostIndex(ctx, new HostLookup(ctx, labels)), enablement, access }),
  };
}
