import { type Cache, isProblem, SYSTEM } from '@platform/sdk';
import type { Ctx } from './context.ts';

/** Where a host name leads (G-PROXY-03). */
export interface Mapping {
  readonly hostname: string;
  readonly env_id: string | null;
  readonly app_id: string | null;
  readonly app_instance_id: string | null;
  readonly service: string;
  readonly org_id: string | null;
  readonly status: string;
  readonly source: 'platform' | 'registry' | 'custom';
  readonly resolved_at: string;
  readonly expires_at: string;
}

const FRESH_MS = 30_000;
const NEGATIVE_MS = 5_000;
const LIMIT = 10_000;

/**
 * Host names to services: the platform plane from constants, everything else from the registry's resolver, cached 30 s (doc3, ingress 2-3).
 */
export class HostMappings {
  readonly #ctx: Ctx;
  readonly #labels = new Map<string, string>();
  /** Of the platform's own hosts, which are as many as there are labels. */
  readonly #constants = new Map<string, { readonly at: number; readonly mapping: Mapping }>();
  readonly #resolved: Cache<Mapping | undefined>;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#resolved = ctx.cache({ max: LIMIT, ttl: mapping => (mapping ? FRESH_MS : NEGATIVE_MS) });
    for (const manifest of ctx.catalog.manifests()) {
      if (manifest.vertical !== 'platform') continue;
      this.#labels.set(manifest.id, manifest.id);
      for (const host of manifest.hosts ?? []) this.#labels.set(host, manifest.id);
    }
  }

  /** The mapping of a host, or `undefined` when nobody answers on it. Throws while the registry cannot say. */
  async find(host: string): Promise<Mapping | undefined> {
    const platform = this.#platform(host);
    if (platform !== 'not ours') return platform;
    return this.#resolved.get(host, () => this.#resolve(host));
  }

  /** What is being asked at this moment may be from before the change: it is not remembered, and nobody joins it. */
  forget(hostnames: readonly string[] | undefined): void {
    this.#resolved.forget(hostnames && (host => hostnames.includes(host)));
  }

  /** What an operator may look at: the platform's own hosts and what was resolved of late. */
  known(): Mapping[] {
    const own = [...this.#labels.keys()]
      .flatMap(label => [this.#platform(this.#ctx.platform.host(label))])
      .filter(mapping => typeof mapping === 'object');
    return [...own, ...this.#cached()];
  }

  #cached(): Mapping[] {
    return this.#resolved.values().flatMap(mapping => mapping ?? []);
  }

  /** `{label}.ops.sys.{domain}` and the gateway twin `bff.{label}.…` are constants (G-K-15). */
  #platform(host: string): Mapping | undefined | 'not ours' {
    const label = this.#ctx.platform.labelOf(host);
    if (label === undefined) return 'not ours';
    const gateway = label.startsWith('bff.');
    const service = gateway ? 'bff' : this.#labels.get(label);
    if (!service || (gateway && !this.#labels.has(label.slice(4)))) return undefined;
    const now = this.#ctx.clock.now().getTime();
    const said = this.#constants.get(host);
    if (said && now - said.at < FRESH_MS) return said.mapping;
    const console = label === 'console' || label === 'bff.console';
    const mapping: Mapping = {
      hostname: host,
      env_id: SYSTEM.envId,
      org_id: SYSTEM.orgId,
      app_id: null,
      app_instance_id: console ? SYSTEM.consoleAppId : null,
      service,
      status: 'active',
      source: 'platform',
      resolved_at: new Date(now).toISOString(),
      expires_at: new Date(now + FRESH_MS).toISOString(),
    };
    this.#constants.set(host, { at: now, mapping });
    return mapping;
  }

  async #resolve(host: string): Promise<Mapping | undefined> {
    const now = this.#ctx.clock.now().getTime();
    try {
      const answer = await this.#ctx.services.registry.resolveHostname({ query: { hostname: host } });
      return {
        hostname: host,
        env_id: answer.env_id,
        org_id: answer.org_id,
        app_id: answer.app_id,
        app_instance_id: answer.app_instance_id,
        service: answer.service,
        status: answer.status,
        source: answer.kind === 'custom' ? 'custom' : 'registry',
        resolved_at: new Date(now).toISOString(),
        expires_at: new Date(now + FRESH_MS).toISOString(),
      };
    } catch (error) {
      if (!isProblem(error) || error.status !== 404) throw error;
      return undefined;
    }
  }
}
