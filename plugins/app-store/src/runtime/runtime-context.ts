import { type Cache, isProblem, type Limit, reply, type Reply } from '@platform/sdk';
import type { RuntimeContext } from '../../contract/schema/runtime.ts';
import type { Ctx, Of } from '../context.ts';

const KNOWN = 5_000;
const KNOWN_MS = 30_000;
/** A host that nobody has is asked about again soon: it may just have been mapped. */
const UNKNOWN_MS = 5_000;
const STALE_MS = 600_000;
const HOST = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** What the frontend of an application is told about itself, by the host on which it was asked (G-APP-04). */
export class RuntimeContexts {
  readonly #ctx: Ctx;
  readonly #known: Cache<RuntimeContext | null>;
  readonly #strangers: Limit;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    // Hosts that lead nowhere have a cache of their own size too: they are told apart by their time alone, and the oldest go first.
    this.#known = ctx.cache({ max: KNOWN, ttl: value => (value === null ? UNKNOWN_MS : KNOWN_MS), stale: { ms: STALE_MS } });
    this.#strangers = ctx.limit({ name: 'runtime-hosts', max: 120, seconds: 60 });
  }

  async of({ hostname, headers, tenant, ip }: Of<'runtimeContext'>): Promise<Reply<RuntimeContext>> {
    const host = hostOf(headers['x-platform-hostname'] ?? hostname);
    if (!HOST.test(host) || host.length > 253) throw this.#unmapped(host);
    const found = await this.#known.get(host, () => this.#lookUp(host, ip));
    // What the ingress injected must be about the same application.
    const other =
      found &&
      ((tenant.appInstanceId !== undefined && tenant.appInstanceId !== found.app_instance_id) ||
        (tenant.envId !== undefined && tenant.envId !== found.env_id));
    if (!found || other) throw this.#unmapped(host);
    return reply(found, { headers: { 'cache-control': 'no-store' } });
  }

  /** Changes show at once in this process, and within half a minute in others. */
  forget(envId: string): void {
    this.#known.forget((_host, value) => value === null || value.env_id === envId);
  }

  async #lookUp(host: string, ip: string): Promise<RuntimeContext | null> {
    // Only what is not known costs anything, and each address has its share of that.
    const { allowed, headers } = await this.#strangers.take(ip);
    if (!allowed) throw this.#ctx.problem('too_many_hosts', { detail: 'Ask again later.', headers: { ...headers } });
    const { registry } = this.#ctx.services;
    try {
      const resolved = await registry.resolveHostname({ query: { hostname: host } });
      const { app_instance_id, env_id, org_id } = resolved;
      if (app_instance_id === null || resolved.status !== 'active') return null;
      const [app, { sources: _sources, custom_css: _css, ...branding }, [installed]] = await Promise.all([
        registry.getApplication({ params: { env_id, app_instance_id } }),
        registry.mergedBranding({ params: { id: env_id } }),
        this.#ctx.db.sql<
          { app_slug: string; version: string }[]
        >`select app_slug, version from instances where app_instance_id = ${app_instance_id} and open`,
      ]);
      return {
        app_instance_id,
        app_slug: installed?.app_slug ?? app.app_id,
        version: installed?.version ?? null,
        env_id,
        org_id,
        hostname: host,
        gateway_url: this.#ctx.platform.publicOrigin(`bff.${host}`),
        feature_flags: app.feature_flags,
        auth: { auth_mode: app.auth_mode, allow_signup: app.allow_signup },
        branding,
      };
    } catch (cause) {
      if (isProblem(cause) && cause.status === 404) return null;
      throw this.#ctx.problem('neighbour_unavailable', { detail: 'The registry did not answer. Try again.', cause });
    }
  }

  #unmapped(host: string) {
    return this.#ctx.problem('app_unmapped', { detail: `${host.slice(0, 100)} is no host of an application.` });
  }
}

/** Lower-cased, without port, trailing dot and the gateway's label (G-K-15). */
const hostOf = (said: string): string =>
  said
    .toLowerCase()
    .replace(/:\d+$/, '')
    .replace(/\.$/, '')
    .replace(/^bff\./, '');
