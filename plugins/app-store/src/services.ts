import { NameServers, StoredObjects } from '@platform/sdk';
import type { Ctx } from './context.ts';
import { DomainBindings } from './domains/domain-bindings.ts';
import { DomainChallenges } from './domains/domain-challenge.ts';
import { DomainMapping } from './domains/domain-mapping.ts';
import { DomainRecheck } from './domains/domain-recheck.ts';
import { Environments } from './instances/environments.ts';
import { Installs } from './instances/installs.ts';
import { Instances } from './instances/instances.ts';
import { Onboarding } from './instances/onboarding.ts';
import { ClientSecrets } from './instances/client-secrets.ts';
import { Setups } from './instances/setups.ts';
import { Uninstalls } from './instances/uninstalls.ts';
import { ListingMedia } from './listings/listing-media.ts';
import { ListingRules } from './listings/listing-rules.ts';
import { Listings } from './listings/listings.ts';
import { Releases } from './listings/releases.ts';
import { Provisioner } from './provisioning/provisioner.ts';
import { TenantHosts } from './provisioning/tenant-hosts.ts';
import { RuntimeContexts } from './runtime/runtime-context.ts';
import { Announcement } from './usage/announcement.ts';
import { DailyCounters } from './usage/daily-counters.ts';
import { Usage } from './usage/usage.ts';

/** The parts of the service, put together. */
export function servicesOf(ctx: Ctx) {
  const listings = new Listings(ctx, new ListingRules(ctx));
  const media = new ListingMedia(ctx, {
    listings,
    objects: new StoredObjects(ctx.backends, cause =>
      ctx.problem('media_unreachable', { detail: 'Object storage did not answer as it should. Try again.', cause }),
    ),
  });
  const releases = new Releases(ctx, listings);
  const instances = new Instances(ctx);
  const challenges = new DomainChallenges(new NameServers(ctx.config.dnsServers));
  const bindings = new DomainBindings(ctx, { challenges, instances, mapping: new DomainMapping(ctx, instances) });
  const recheck = new DomainRecheck(ctx, { bindings, challenges, instances });
  const hosts = new TenantHosts(ctx);
  const installs = new Installs(ctx, { bindings, instances, provisioner: new Provisioner(ctx) });
  const onboarding = new Onboarding(ctx, instances);
  const setups = new Setups(ctx, { bindings, hosts, installs, instances, onboarding, releases });
  const uninstalls = new Uninstalls(ctx, { installs, instances, onboarding });
  return {
    announcement: new Announcement(ctx),
    bindings,
    counters: new DailyCounters(ctx),
    environments: new Environments(ctx, instances),
    hosts,
    installs,
    instances,
    listings,
    media,
    onboarding,
    recheck,
    releases,
    runtime: new RuntimeContexts(ctx),
    secrets: new ClientSecrets(ctx, instances),
    setups,
    uninstalls,
    usage: new Usage(ctx),
  };
}
