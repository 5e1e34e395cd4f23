import { defineContract, Type } from '@platform/sdk/contract';
import { events } from './events.ts';
import { problems } from './problems.ts';
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
    auditKeyRef: Type.String({ env: 'PLATFORM_SYS_AUDIT_KEY_REF', description: 'Secret reference of the 32 bytes (base64) that the key of the audit trail is made from' }),
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
  routes: { ...tenantRoutes, ...serviceRoutes, ...memberRoutes, ...brandingRoutes, ...resolverRoutes, ...auditRoutes, ...policyRoutes },

  jobs: {
    signAudit: { summary: 'Sign where the audit trail stands', every: '10s', runs: 'fleet' },
    forgetAudit: { summary: 'Delete audit events past their retention', every: '1h', runs: 'fleet' },
  },
});
