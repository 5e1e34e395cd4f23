import { type PlatformContext, platformHost, platformLabel, platformZone } from '@platform/sdk';

/** The names of `ctx.platform` in a domain, for a part that is tried without a whole service. */
export const platformNames = (domain: string): Pick<PlatformContext<never>['platform'], 'domain' | 'zone' | 'host' | 'labelOf'> => ({
  domain,
  zone: platformZone(domain),
  host: label => platformHost(label, domain),
  labelOf: host => platformLabel(host, domain),
});
