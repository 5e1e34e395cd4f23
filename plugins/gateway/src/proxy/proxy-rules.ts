import type { Manifest } from '@platform/sdk';
import type { App } from '../apps/app.ts';
import type { Ctx } from '../context.ts';

/** Names that C12 keeps for parts of the platform that are no services; of those that are, the contract says it. */
const RESERVED: ReadonlySet<string> = new Set(['tls', 'secrets']);
const SERVICE = /^[a-z][a-z0-9]{0,30}$/;
const DATA_PATHS = /^\/(v\d+\/|scim\/v2\/|openapi\.json$)/;

/**
 * What an application may reach. A forwarded call travels on the gateway's own certificate, so whatever a platform service grants to that
 * certificate without asking for a token (OAuth clients, enrollment) is out of reach from a browser.
 */
export class ProxyRules {
  readonly #ctx: Ctx;
  readonly #closed = new Map<string, readonly RegExp[]>();

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** Throws `not_whitelisted`. */
  require(app: App, call: { service: string; method: string; path: string; scopes: readonly string[] }): void {
    const { service, method, path, scopes } = call;
    const named = SERVICE.test(service) && service !== 'bff';
    const listed = app.services === 'all' || (!this.#isBanned(service) && app.services.has(service));
    const scoped = app.scopes === undefined || scopes.some(scope => app.scopes?.has(scope));
    if (!named || !listed || !scoped)
      throw this.#ctx.problem('not_whitelisted', { detail: `${service.slice(0, 40)} is not on the application's list.` });
    if (this.#isClosed(service, method, path))
      throw this.#ctx.problem('not_whitelisted', { detail: 'This path is for workloads, not for browsers.' });
  }

  /** Never for an application of a tenant (C12). */
  #isBanned(service: string): boolean {
    return (
      RESERVED.has(service) || this.#ctx.catalog.manifests().some(({ id, forApplications }) => id === service && forApplications === false)
    );
  }

  #isClosed(service: string, method: string, path: string): boolean {
    const manifest = this.#ctx.catalog.manifests().find(({ id }) => id === service);
    if (manifest?.vertical !== 'platform') return false;
    let decoded: string;
    try {
      decoded = decodeURIComponent(path);
    } catch {
      return true;
    }
    if (Object.values(manifest.routes).some(({ door }) => door === 'node') && !DATA_PATHS.test(decoded)) return true;
    if (method === 'GET' || method === 'HEAD') return false;
    return this.#patterns(manifest).some(pattern => pattern.test(decoded));
  }

  /** Doors of a platform service that change something and ask for no token. */
  #patterns(manifest: Manifest): readonly RegExp[] {
    let patterns = this.#closed.get(manifest.id);
    if (!patterns) {
      patterns = Object.values(manifest.routes)
        .filter(
          ({ door, method, options }) =>
            door !== 'node' && door !== 'listener' && method !== 'GET' && typeof options.gate === 'object' && 'public' in options.gate,
        )
        .map(
          ({ path }) =>
            new RegExp(
              `^${path
                .replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&')
                .replaceAll(/\{(\\\*)?[A-Za-z_]+\}/g, (_, rest?: string) => (rest ? '.*' : '[^/]+'))}$`,
            ),
        );
      this.#closed.set(manifest.id, patterns);
    }
    return patterns;
  }
}
