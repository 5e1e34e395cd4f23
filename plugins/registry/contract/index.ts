import { defineContract, Type } from '@platform/sdk/contract';
import { events } from './events.ts';
import { problems } from './problems.ts';
import { appRoutes } from './routes/app-routes.ts';
import { auditRoutes } from './routes/audit-routes.ts';
import { brandingRoutes } from './routes/branding-routes.ts';
import { memberRoutes } from './routes/member-routes.ts';
import { policyRoutes } from './routes/policy-routes.ts';
import { resolverRoutes } from './routes/resolver-routes.ts';
import { serviceRoutes } from './routes/service-routes.ts';
import { tenantRoutes } from './routes/tenant-routes.ts';

/** Tenant registry and control plane (doc1; G-SYS). */
export const registry = defineContract({
  id: 'sys',
  title: 'Tenant registry',
  placement: { tier: 15 },
  uses: { auth: ['auth:membership:read', 'auth:membership:write'] },
  capabilities: ['key-value'],
  config: Type.Object({
    auditRetentionDays: Type.Integer({ env: 'PLATFORM_SYS_AUDIT_RETENTION_DAYS', default: 400, minimum: 1, description: 'Days an audit event is kept' }),
    dnsServers: Type.String({
      env: 'PLATFORM_SYS_DNS_SERVERS',
      default: '',
      pattern: '^([0-9a-fA-F:.\\[\\]]+(, ?[0-9a-fA-F:.\\[\\]]+)*)?$',
      description: "Addresses of the DNS servers that custom domains are proven against, separated by commas; the system's when empty",
    }),
  }),

  actions: {
    'sys:sys:admin': { title: 'Administer the platform', principals: ['user', 'delegated'] },
    'sys:read': { title: 'Read organizations and environments' },
    'sys:org:admin': { title: 'Create and change organizations' },
    'sys:env:admin': { title: 'Create and change environments' },
    'sys:app:admin': { title: 'Manage applications of an environment' },
    'sys:services:admin': { title: 'Enable and disable services' },
    'sys:memberships:admin': { title: 'Manage members and invitations' },
    'sys:instances:read': { title: 'Resolve hosts and app instances' },
    'sys:verticals:write': { title: 'Register a vertical', principals: ['machine'], bound: true },
    'audit:read': { title: 'Read the audit trail' },
    'audit:write': { title: 'Record audit events', principals: ['machine'] },
    'tenants:read': { title: 'Read tenant snapshots', principals: ['machine'], bound: true },
    'sys:policy:store': { title: 'Keep the policy data of the own service', principals: ['machine'], bound: true },
  },

  problems,
  events,
  routes: { ...tenantRoutes, ...serviceRoutes, ...appRoutes, ...memberRoutes, ...brandingRoutes, ...resolverRoutes, ...auditRoutes, ...policyRoutes },

  pages: {
    applications: {
      kind: 'table',
      title: 'Applications',
      description: 'App instances of this environment and where people reach them',
      source: 'applicationRows',
      key: 'app_instance_id',
      scope: 'env',
      live: ['platform:sys:app:created', 'platform:sys:app:updated', 'platform:sys:app:archived'],
      empty: 'No application is installed here.',
      rowActions: [
        { route: 'verifyApplicationRow', label: 'Verify domain', when: { field: 'custom_domain.status', is: 'pending' } },
        {
          route: 'archiveApplicationRow',
          label: 'Archive',
          confirm: 'Nobody reaches the application any more. Its host name stays with this organization.',
          tone: 'bad',
          when: { field: 'status', is: 'active' },
        },
      ],
      columns: [
        { field: 'name', label: 'Name' },
        { field: 'slug', label: 'Slug', as: 'code' },
        { field: 'hostname', label: 'Host', as: 'code' },
        { field: 'custom_domain.fqdn', label: 'Custom domain', as: 'code' },
        { field: 'custom_domain.status', label: 'Domain status', as: 'status', tones: { verified: 'ok', pending: 'warn', failed: 'bad' } },
        { field: 'auth_mode', label: 'Way in' },
        { field: 'status', label: 'Status', as: 'status', tones: { active: 'ok', archived: 'muted' } },
      ],
    },
  },

  jobs: {
    forgetAudit: { summary: 'Delete audit events past their retention', every: '1h', runs: 'fleet' },
    recheckDomains: { summary: 'Look again for the DNS records of verified custom domains', every: '1h', runs: 'fleet' },
  },
});
