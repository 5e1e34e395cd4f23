import { defineContract, Id, task, Type } from '@platform/sdk/contract';
import { events } from './events.ts';
import { pages } from './pages.ts';
import { problems } from './problems.ts';
import { appRoutes } from './routes/app-routes.ts';
import { auditRoutes } from './routes/audit-routes.ts';
import { brandingRoutes } from './routes/branding-routes.ts';
import { memberRoutes } from './routes/member-routes.ts';
import { policyRoutes } from './routes/policy-routes.ts';
import { resolverRoutes } from './routes/resolver-routes.ts';
import { serviceRoutes } from './routes/service-routes.ts';
import { tenantRoutes } from './routes/tenant-routes.ts';
import { upkeepRoutes } from './routes/upkeep-routes.ts';
import { verticalRoutes } from './routes/vertical-routes.ts';
import { BegunAcceptance, BegunRemoval } from './schema/settling.ts';
import { FollowedTenant } from './schema/upkeep.ts';
import { templates } from './templates.ts';

/** Tenant registry and control plane (doc1; G-SYS). */
export const registry = defineContract({
  id: 'sys',
  title: 'Tenant registry',
  placement: { tier: 15 },
  forApplications: false,
  essential: true,
  uses: { auth: ['auth:membership:read', 'auth:membership:write'] },
  workloads: { post: { post: ['post:write'] } },
  capabilities: ['key-value', 'policy-store', 'backends'],
  folders: ['audit'],
  config: Type.Object({
    auditRetentionDays: Type.Integer({
      env: 'PLATFORM_SYS_AUDIT_RETENTION_DAYS',
      default: 400,
      minimum: 1,
      description: 'Days an audit event is kept',
    }),
    dnsServers: Type.String({
      env: 'PLATFORM_SYS_DNS_SERVERS',
      default: '',
      pattern: '^([0-9a-fA-F:.\\[\\]]+(, ?[0-9a-fA-F:.\\[\\]]+)*)?$',
      description: "Addresses of the DNS servers that custom domains are proven against, separated by commas; the system's when empty",
    }),
  }),

  keys: {
    mail: {
      use: 'seal',
      documented: 'PLATFORM_SYS_KEY_ENCRYPTION_REF',
      description: 'Secret reference of the 32 bytes (base64) that seal queued mail',
      file: 'sys.key',
    },
    audit: {
      use: 'seeds',
      documented: 'PLATFORM_SYS_AUDIT_KEY_REF',
      description: 'Secret reference of the 32 bytes (base64) that the key of the audit trail is made from; a second line is the next key',
      file: 'audit.key',
    },
  },

  actions: {
    'sys:sys:admin': { title: 'Administer the platform', principals: ['user', 'delegated'] },
    'sys:read': { title: 'Read organizations and environments' },
    'sys:org:admin': { title: 'Create and change organizations' },
    'sys:env:admin': { title: 'Create and change environments' },
    'sys:app:admin': { title: 'Manage applications of an environment' },
    'sys:domains:challenge': { title: 'Prove custom domains by challenges of its own', principals: ['machine'], bound: true },
    'sys:services:admin': { title: 'Enable and disable services' },
    'sys:memberships:admin': { title: 'Manage members and invitations' },
    'sys:invitations:join': { title: 'Take in invited people who opened an account', principals: ['machine'], bound: true },
    'sys:invitations:check': { title: 'Ask whether an address has a pending invitation', principals: ['machine'], bound: true },
    'sys:instances:read': { title: 'Resolve hosts and app instances' },
    'sys:verticals:write': { title: 'Register a vertical', principals: ['machine'], bound: true },
    'sys:verticals:found': { title: 'Say which plugins a machine has', principals: ['machine'], bound: true },
    'audit:read': { title: 'Read the audit trail' },
    'audit:write': { title: 'Record audit events', principals: ['machine'] },
    'tenants:read': { title: 'Read tenant snapshots', principals: ['machine'], bound: true },
    'sys:policy:read': { title: 'Read policies, and who can do what', grants: 'admin' },
    'sys:policy:admin': { title: 'Change policies of every service' },
    'sys:environments:read': { title: 'Read whether environments take changes', principals: ['machine'], bound: true },
    'sys:policy:store': { title: 'Keep the policy data of the own service', principals: ['machine'], bound: true },
  },

  problems,
  events,
  routes: {
    ...tenantRoutes,
    ...upkeepRoutes,
    ...serviceRoutes,
    ...verticalRoutes,
    ...appRoutes,
    ...memberRoutes,
    ...brandingRoutes,
    ...resolverRoutes,
    ...auditRoutes,
    ...policyRoutes,
  },

  tasks: {
    // Registry rule 9: what the notification service does not take is tried for ever (C29), every ten seconds at first.
    inviteByMail: task(
      Type.Object({
        to: Type.String(),
        org_name: Type.String(),
        link: Type.String(),
        invitation_id: Id,
        ends_on: Type.String(),
        correlation_id: Type.String(),
      }),
      {
        summary: 'Hand the mail of an invitation to the notification service',
        attempts: 'unlimited',
        backoff: [10, 20, 40, 80, 160, 320, 600],
        abreast: 1,
        timeout: '15s',
        sealed: 'mail',
      },
    ),
    followTenant: task(FollowedTenant, {
      summary: 'Tell the identity service what became of a tenant, until it has followed',
      attempts: 'unlimited',
      backoff: [2, 4, 8, 16, 32, 64, 128, 256, 300],
      timeout: '5s',
    }),
    // Both are queued before the identity service is asked, and taken back with the commit: one that runs finds what a crash left.
    settleAcceptance: task(BegunAcceptance, {
      summary: 'Take out again whom an acceptance that was never committed had taken in',
      attempts: 'unlimited',
      backoff: [30, 30, 30, 60, 300],
    }),
    settleRemoval: task(BegunRemoval, {
      summary: 'Tell of a removal that happened without its commit',
      attempts: 'unlimited',
      backoff: [30, 30, 30, 60, 300],
    }),
    seeOut: task(Type.Object({ service: Type.String() }), {
      summary: 'Forget a service that was taken out, when its last process has ended',
      attempts: 'unlimited',
      backoff: [1, 2, 2, 5, 10],
      timeout: '15s',
    }),
    purgeEnvironment: task(Type.Object({ env_id: Id, service: Type.String() }), {
      summary: 'Have a service delete what it holds of a deleted environment',
      attempts: 300,
      backoff: [2, 5, 15, 60, 300],
      timeout: '1m',
    }),
  },
  onEnvironmentDeleted: {
    keep: {
      audit: 'the trail outlives what it tells of, for its retention',
      audit_anchors: 'signatures of the trail',
      audit_cuts: 'proofs of what the retention removed from the trail',
      audit_heads: 'ends of the trail',
      hostnames: 'deleted with the environment, or kept so that nobody else gets the name',
      policy_sets: 'deleted with the environment, in one transaction',
      policy_relations: 'deleted with the environment, in one transaction',
      policy_attributes: 'deleted with the environment, in one transaction',
    },
  },
  jobs: {
    sealAnew: { summary: 'Seal under the key of now queued mail that lies sealed under one that came before', every: '5m', runs: 'fleet' },
    signAudit: { summary: 'Sign where the audit trail stands', every: '10s', runs: 'fleet' },
    watchAudit: { summary: 'Take note outside the database of what was signed', every: '10s', runs: 'process' },
    forgetAudit: { summary: 'Delete audit events past their retention', every: '1h', runs: 'fleet' },
    recoverCreations: { summary: 'Finish creates whose process died after the access model stood', every: '10s', runs: 'fleet' },
    recheckDomains: { summary: 'Look again for the DNS records of verified custom domains', every: '1h', runs: 'fleet' },
  },
  templates,
  pages,
});
