import { del, get, PageQuery, post, put, Type } from '@platform/sdk';
import type { MountedRoute, RouteHandler } from '../../http/service-app.ts';
import type { PolicyKind } from '../../policy/policy-port.ts';
import { AdministeredPolicies, type AdminRequest, missing, type PolicyAdministrationOptions } from './administered-policies.ts';
import { POLICY_KINDS } from './policy-kinds.ts';

const LIMIT = 65_536;
const DryRun = Type.Object({
  principal: Type.String(),
  action: Type.String(),
  resource: Type.Optional(Type.String()),
  context: Type.Optional(Type.Object({}, { additionalProperties: true })),
});

const query = {
  id: Type.Optional(Type.String()),
  service: Type.Optional(Type.String()),
  ...PageQuery,
};

/** The administration endpoints every service gets: policy sets, relations, attributes and decisions of (environment, service) (G-K-10). */
export function policyAdministration(options: PolicyAdministrationOptions): Record<string, MountedRoute> {
  const policies = new AdministeredPolicies(options);
  return {
    ...Object.assign({}, ...(Object.keys(POLICY_KINDS) as PolicyKind[]).map(kind => rowRoutes(kind, policies, options))),
    ...decisionRoutes(policies, options),
  };
}

const mounted = (route: MountedRoute['route'], handler: (request: AdminRequest) => Promise<unknown>): MountedRoute => ({
  route,
  handler: handler as unknown as RouteHandler,
});

/** Reading, writing, replacing and deleting the rows of one kind. */
function rowRoutes(
  kind: PolicyKind,
  policies: AdministeredPolicies,
  { service, keepsAll }: PolicyAdministrationOptions,
): Record<string, MountedRoute> {
  const path = `/v1/admin/${kind}`;
  const { body, member } = POLICY_KINDS[kind];
  const admin = `${service}:policy:admin`;
  const shown = { query, env: 'target', hidden: !keepsAll } as const;
  // Sets alone have a version (G-K-10).
  const versioned = kind === 'policy-sets' ? ({ ifMatch: true } as const) : {};
  const written = { gate: admin, ...shown, ...versioned, body, limit: LIMIT } as const;
  const apply = (request: AdminRequest) => policies.apply(kind, request);
  return {
    [`${member}List`]: mounted(
      get(path, { summary: `List ${kind}`, gate: { any: [`${service}:policy:read`, admin] }, ...shown }),
      request => policies.list(kind, request),
    ),
    [`${member}Write`]: mounted(post(path, { summary: `Write ${kind}`, ...written }), apply),
    [`${member}Put`]: mounted(put(path, { summary: `Replace ${kind}`, ...written }), apply),
    [`${member}Delete`]: mounted(del(path, { summary: `Delete ${kind}`, gate: admin, ...shown, ...versioned }), async request =>
      request.query.id ? policies.remove(kind, request, request.query.id) : missing(''),
    ),
  };
}

/** What was decided lately, and what would be. */
function decisionRoutes(policies: AdministeredPolicies, { service }: PolicyAdministrationOptions): Record<string, MountedRoute> {
  const path = '/v1/admin/decisions';
  const shown = { gate: { any: [`${service}:policy:read`, `${service}:policy:admin`] }, query, env: 'target', hidden: true } as const;
  return {
    decisionsList: mounted(get(path, { summary: 'Latest decisions of this process', ...shown }), request => policies.decisions(request)),
    decisionsDryRun: mounted(post(path, { summary: 'Say what would be decided, and why', ...shown, body: DryRun, limit: LIMIT }), request =>
      policies.dryRun(request),
    ),
  };
}
