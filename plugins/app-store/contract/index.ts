import { defineContract, Id, subscribe, task, Type } from '@platform/sdk/contract';
import { takesFirings } from '@platform/scheduler/contract';
import { executesSteps } from '@platform/workflow/contract';
import { events } from './events.ts';
import { pages } from './pages.ts';
import { problems } from './problems.ts';
import { instanceRoutes } from './routes/instance-routes.ts';
import { listingRoutes } from './routes/listing-routes.ts';
import { platformRoutes } from './routes/platform-routes.ts';

const Named = Type.Object({ instance_id: Id });

/** The app store: listings, their installs, and what an installed application is told (doc1, App store service; G-APP). */
export const appStore = defineContract({
  id: 'app',
  title: 'App store',
  placement: { tier: 40 },
  forApplications: false,
  uses: {
    auth: ['auth:membership:read', 'auth:membership:write', 'auth:clients:write'],
    sys: ['sys:read', 'sys:app:admin', 'sys:instances:read', 'sys:domains:challenge', 'tenants:read'],
    storage: ['storage:objects:read', 'storage:objects:write'],
    stat: ['stat:measure', 'stat:properties:write'],
    workflow: ['workflow:handlers:write', 'workflow:runs:write'],
    cron: ['cron:schedules:write'],
  },
  capabilities: ['backends'],
  config: Type.Object({
    dnsServers: Type.String({
      env: 'PLATFORM_APP_DNS_SERVERS',
      default: '',
      pattern: '^([0-9a-fA-F:.\\[\\]]+(, ?[0-9a-fA-F:.\\[\\]]+)*)?$',
      description:
        "Addresses of the DNS servers that domains of applications are proven against, separated by commas; the system's when empty",
    }),
  }),
  keys: {
    secrets: {
      use: 'seal',
      documented: 'PLATFORM_APP_KEY_ENCRYPTION_REF',
      description: 'Secret reference of the 32 bytes (base64) that seal the secrets of applications',
      file: 'app.key',
    },
  },
  actions: {
    'app:listings:read': { title: 'See the store as its administrators do', grants: 'read' },
    'app:listings:admin': { title: 'Publish listings', grants: 'admin' },
    'app:instances:read': { title: 'See installed applications', grants: 'read' },
    'app:instances:admin': { title: 'Install and uninstall applications', grants: 'admin' },
    'app:steps:execute': executesSteps,
    'app:jobs:run': takesFirings,
  },
  problems,
  events,
  routes: { ...listingRoutes, ...instanceRoutes, ...platformRoutes },
  consumes: {
    'app-usage': subscribe('platform:stat.aggregate.updated', { family: 'stat-pipeline', ordered: 'property_id', reconnect_s: 2 }),
    onboarded: subscribe('platform:workflow:run:completed', { family: 'workflow' }),
    declined: subscribe('platform:workflow:run:failed', { family: 'workflow' }),
    envChanged: subscribe('platform:sys:env:updated', { family: 'sys' }),
    envArchived: subscribe('platform:sys:env:archived', { family: 'sys' }),
    orgChanged: subscribe('platform:sys:org:updated', { family: 'sys' }),
    orgArchived: subscribe('platform:sys:org:archived', { family: 'sys' }),
  },
  onEnvironmentDeleted: { purge: { instances: 'installed applications', listings: 'listings' } },
  tasks: {
    settle: task(Named, {
      summary: 'Finish or undo an install that its process left',
      lane: 'env',
      attempts: 'unlimited',
      backoff: [5, 30, 60, 300],
      timeout: '2m',
      slots: 4,
    }),
    uninstall: task(Named, {
      summary: 'Take away what an application was given',
      lane: 'env',
      attempts: 'unlimited',
      backoff: [5, 30, 60, 300],
      timeout: '2m',
      slots: 4,
    }),
    discard: task(Type.Object({ storage_key: Type.String() }), {
      summary: 'Delete an image that no listing shows',
      attempts: 50,
      backoff: [5, 30, 300],
    }),
    forgetProperty: task(Type.Object({ property_id: Id }), {
      summary: 'Delete what was measured of a listing that is gone',
      attempts: 50,
      backoff: [5, 30, 300],
    }),
    count: task(Type.Object({ day: Type.String(), at: Type.String() }), {
      summary: 'Record the counters of a day',
      attempts: 8,
      backoff: [5, 30, 300],
      timeout: '5m',
    }),
  },
  jobs: {
    announce: { summary: 'Say to the workflow service and the scheduler what is done here', every: '30s', runs: 'process', timeout: '20s' },
    recheckDomains: { summary: 'Look again for the DNS records of domains that were asked for', every: '5m', runs: 'fleet', timeout: '4m' },
    sealAnew: { summary: 'Seal under the key of now what lies sealed under one that came before', every: '5m', runs: 'fleet' },
    forgetUsage: { summary: 'Forget which sums were taken over, past eight days', every: '1h', runs: 'fleet' },
  },
  pages,
});
