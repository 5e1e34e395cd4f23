import { type AnyRoute, type Caller, gateActions, get, post, reply, type Request, Type } from '@platform/sdk';
import { kernelProblem } from '../../base/kernel-problem.ts';
import type { Manifest } from '../../base/manifest.ts';
import { openApi } from '../../http/open-api.ts';
import { pageDefinition } from '../../http/pages/page-definition.ts';
import { gatesOfPage, pageGates } from '../../http/pages/page-resources.ts';
import type { MountedRoute, RouteHandler } from '../../http/service-app.ts';
import type { ServiceInstanceParts } from './service-instance-parts.ts';
import type { ServiceSight } from './service-sight.ts';
import type { StreamTickets } from '../../http/doors/stream-tickets.ts';

export interface KernelRouteParts {
  readonly manifest: Manifest;
  readonly build: string;
  readonly startedAt: number;
  readonly sight: ServiceSight;
  /** Plugins that are not running, and services whose process was given up on. */
  readonly failedPlugins: ServiceInstanceParts['failedPlugins'];
  /** Whether the caller passes one of a page's gates. */
  readonly allows: (caller: NonNullable<Request['caller']>, actions: readonly string[]) => Promise<boolean>;
  readonly described: () => Readonly<Record<string, MountedRoute['route']>>;
}

const PageParams = Type.Object({ params: Type.Optional(Type.Object({}, { additionalProperties: true })) });
const TicketAnswer = Type.Object({ ticket: Type.String(), expires_in: Type.Integer() });

const mounted = (route: MountedRoute['route'], handler: (request: Request) => Promise<unknown>): MountedRoute => ({
  route,
  handler: handler as unknown as RouteHandler,
});

/** Health, readiness, metrics, interface description and page definitions: every service has them, no author writes them. */
export function kernelRoutes(parts: KernelRouteParts): Record<string, MountedRoute> {
  const { manifest, build } = parts;
  return {
    health: mounted(
      get('/v1/health', {
        summary: 'Liveness and the running build',
        gate: { public: 'Probes hold no credential' },
        returns: Type.Object({ status: Type.String() }),
      }),
      async ({ peer }) => {
        const failed = await parts.failedPlugins();
        return {
          status: failed.length > 0 ? 'degraded' : 'ok',
          service: manifest.id,
          version: `${manifest.version}.${build}`,
          build,
          uptime_s: Math.floor((Date.now() - parts.startedAt) / 1_000),
          active_connections: Math.max(0, parts.sight.active - 1),
          // How busy it is, is for the platform's own workloads.
          ...(peer ? parts.sight.totals : {}),
          ...(failed.length > 0 ? { failed_plugins: failed } : {}),
          ...(await parts.sight.health()),
        };
      },
    ),
    readiness: mounted(
      get('/v1/readiness', { summary: 'Whether the service can do its work now', gate: { public: 'Probes hold no credential' } }),
      async () => {
        const checks = await parts.sight.readiness();
        const ready = Object.values(checks).every(({ ok }) => ok);
        return reply(
          { status: ready ? 'ready' : 'not_ready', checks },
          { status: ready ? 200 : 503, headers: ready ? {} : { 'retry-after': '2' } },
        );
      },
    ),
    metrics: mounted(
      get('/v1/metrics', {
        summary: 'Figures of this service and its process',
        gate: { workload: 'What scrapes is a service of the platform', or: metricsActions(manifest) },
        env: 'any',
        hidden: true,
      }),
      async ({ headers }) => {
        const values = await parts.sight.figures();
        if (!headers['accept']?.includes('text/plain')) return values;
        return reply(await parts.sight.text(values), { headers: { 'content-type': 'text/plain; version=0.0.4' } });
      },
    ),
    openapi: mounted(get('/openapi.json', { summary: 'This interface', gate: { public: 'An interface is no secret' } }), async () =>
      openApi(manifest, { ...parts.described(), ...pageDoors(manifest) }),
    ),
    ...pageRoutes(parts),
  };
}

/** Definitions of the service's pages; none where nobody may see one. */
function pageRoutes({ manifest, allows }: KernelRouteParts): Record<string, MountedRoute> {
  const gates = pageGates(manifest);
  if (Object.keys(manifest.pages).length === 0 || gates.length === 0) return {};
  const path = '/v1/admin/ui/{*page}';
  const shown = {
    params: { page: Type.String({ maxLength: 200 }) },
    summary: 'Definition of an admin page',
    gate: { any: gates },
  } as const;
  const define = async ({ params, caller }: Request) => {
    const name = (params as { page: string }).page;
    const definition = pageDefinition(manifest, name);
    if (!definition) throw kernelProblem('not_found', { detail: `${manifest.id} has no page ${name}.` });
    const needed = gatesOfPage(manifest, name);
    if (needed.length > 0 && !(await allows(caller as NonNullable<Request['caller']>, needed)))
      throw kernelProblem('policy_denied', { detail: `The page needs one of ${needed.join(', ')}.` });
    return definition;
  };
  return {
    adminUi: mounted(get(path, { ...shown, query: { type: Type.Optional(Type.String()) } }), define),
    // The same, for a caller that sends its parameters in a body (G-CAP-12).
    adminUiPost: mounted(post(path, { ...shown, body: PageParams, env: 'any', status: 200, hidden: true }), define),
  };
}

/** Who may read the figures of a service beside workloads (F-27). */
export const metricsActions = ({ id, actions }: Manifest): readonly string[] => [
  `${id}:metrics:read`,
  ...(`${id}:read` in actions ? [`${id}:read`] : []),
];

/** For every gated event stream a mint of tickets, behind the gate of the stream itself (H-06). */
export function ticketRoutes(own: Readonly<Record<string, MountedRoute>>, tickets: StreamTickets): Record<string, MountedRoute> {
  const streams = Object.entries(own).filter(([, { route }]) => route.door === 'stream' && gateActions(route.options.gate) !== undefined);
  return Object.fromEntries(
    streams.map(([name, { route }]) => {
      const mint = post(`${route.path}/ticket`, {
        ...(route.options.params ? { params: route.options.params } : {}),
        summary: 'A ticket that opens this event stream once',
        gate: route.options.gate,
        returns: TicketAnswer,
        status: 201,
        hidden: true,
      });
      const handler = ({ caller }: Request) => tickets.mint(name, caller as Caller);
      return [`ticket.${name}`, { route: mint, handler: handler as unknown as RouteHandler }];
    }),
  );
}

/** What the description says of them: one path for the data and mutations of every page, whose routes are described by themselves. */
function pageDoors(manifest: Manifest): Record<string, AnyRoute> {
  const gate = { any: pageGates(manifest) };
  if (gate.any.length === 0) return {};
  return {
    adminResource: get('/v1/admin/{resource}', { summary: 'Data of an admin page', gate, env: 'own' }),
    adminResourceWrite: post('/v1/admin/{resource}', { summary: 'A mutation of an admin page', gate, env: 'own' }),
  };
}
