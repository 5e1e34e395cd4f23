import { identity } from '@platform/identity/contract';
import { registry } from '@platform/registry/contract';
import { scheduler } from '@platform/scheduler/contract';
import { definePlugin } from '@platform/sdk';
import { statistics } from '@platform/statistics/contract';
import { storage } from '@platform/storage/contract';
import { workflow } from '@platform/workflow/contract';
import { appStore } from '../contract/index.ts';
import { type InstanceRow, secretPurpose } from './instances/instance-row.ts';
import { servicesOf } from './services.ts';
import { viewerOf } from './listings/listing-row.ts';
import { figuresOf } from './usage/figures.ts';

export default definePlugin(appStore, {
  uses: { identity, registry, storage, statistics, workflow, scheduler },
  migrations: new URL('../migrations/', import.meta.url),

  setup(ctx) {
    const parts = servicesOf(ctx);
    const {
      announcement,
      bindings,
      counters,
      environments,
      hosts,
      installs,
      instances,
      listings,
      media,
      onboarding,
      recheck,
      releases,
      runtime,
      secrets,
      setups,
      uninstalls,
      usage,
    } = parts;
    const allowed = ({ manifest }: InstanceRow, fqdn: string) => setups.requireCallback(manifest.oauth_defaults.redirect_uris, fqdn);
    const follow = async (envId: string) => {
      runtime.forget(envId);
      await environments.follow(envId);
    };
    return {
      routes: {
        listListings: ({ caller, targetEnvId, query }) => listings.list(caller, targetEnvId, query),
        createListing: request => listings.create(request),
        getListing: ({ caller, targetEnvId, params }) => listings.get(caller, targetEnvId, params.listing_id),
        updateListing: request => listings.update(request),
        deleteListing: request => listings.remove(request),
        addMedia: request => media.add(request),
        removeMedia: request => media.remove(request),
        media: exchange => media.read(exchange),
        listingRows: ({ caller, env, query }) => listings.list(caller, env, query),
        listingRow: ({ caller, env, params }) => listings.get(caller, env, params.listing_id),
        listingVersions: ({ caller, env, params }) => listings.versions(viewerOf(caller, env), params.listing_id),
        listingRoles: ({ caller, env, params }) => listings.roles(viewerOf(caller, env), params.listing_id),
        listingImages: async ({ caller, env, params }) => ({
          items: (await listings.seen(viewerOf(caller, env), params.listing_id)).media,
        }),
        publishListing: request => listings.to('published', request),
        deprecateListing: request => listings.to('deprecated', request),
        archiveListing: request => listings.to('archived', request),

        setup: ({ body, caller, env }) => setups.setup(body, { caller, env }),
        install: request => setups.install(request),
        listInstances: ({ env, query: { envId: _env, ...query } }) => instances.list(env, query),
        getInstance: ({ env, params }) => instances.get(env, params.instance_id),
        deleteInstance: request => uninstalls.uninstall(request),
        rotateSecret: request => secrets.rotate(request),
        bindDomain: request => bindings.bind(request, allowed),
        useDomain: ({ params, env, body, caller }) => bindings.bind({ params, env, body, caller }, allowed),
        getDomain: ({ env, params }) => bindings.get(env, params.instance_id),
        unbindDomain: request => bindings.unbind(request),
        instanceAccess: ({ env, params }) => instances.access(env, params.instance_id),
        checkDomain: request => bindings.check(request),
        instanceDomains: ({ env, params }) => bindings.of(env, params.instance_id),
        installableListings: ({ caller, env }) => releases.installable(caller, env),
        authUrls: async ({ env }) => ({ items: (await hosts.authUrls(await hosts.of(env))).map(value => ({ value, label: value })) }),

        runtimeContext: request => runtime.of(request),
        executeStep: async ({ body }) => onboarding.execute(body),
        dailyCounters: ({ body }) => counters.ask(body),
        figures: ({ env }) => figuresOf(ctx, env),
      },
      on: {
        'app-usage': delivery => usage.take(delivery),
        onboarded: delivery => onboarding.completed(delivery),
        declined: delivery => onboarding.failed(delivery),
        envChanged: ({ envId }) => follow(envId),
        envArchived: ({ envId }) => follow(envId),
        orgChanged: ({ payload }) => environments.followOrganization(payload.org_id),
        orgArchived: ({ payload }) => environments.followOrganization(payload.org_id),
      },
      tasks: {
        settle: async payload => {
          if ((await installs.settle(payload)) === 'done') return;
          const row = await instances.find(payload.instance_id);
          if (row) await onboarding.start(row);
        },
        uninstall: payload => uninstalls.resume(payload),
        discard: payload => media.discard(payload),
        forgetProperty: ({ property_id }) => ctx.services.statistics.removeProperty({ params: { property_id } }),
        count: (payload, { signal }) => counters.count(payload, signal),
      },
      jobs: {
        announce: () => announcement.make(),
        recheckDomains: signal => recheck.run(signal),
        sealAnew: signal =>
          ctx.reseal('secrets', [{ table: 'instances', id: 'instance_id', column: 'client_secret', purpose: secretPurpose }], signal),
        forgetUsage: () => usage.forget(),
      },
      // Both neighbours may come up later: the job says it again until they have heard it.
      ready: async () => void announcement.make().catch(err => ctx.log.debug({ err }, 'steps and schedule are registered later')),
    };
  },
});
