import { SYSTEM } from '@platform/sdk';
import type { AppInstances } from './app-instances.ts';
import type { Ctx } from '../context.ts';
import type { App } from './app.ts';

/** What an exchange says about where it was sent, whatever its transport. */
export interface Visit {
  readonly hostname: string;
  readonly tenant: { readonly envId?: string; readonly appInstanceId?: string };
  readonly ip: string;
  readonly header: (name: string) => string | undefined;
}

const CONSOLE_CLIENT = 'console';

/** Which application a host belongs to. The console is a constant (C11); the registry knows the others. */
export class Apps {
  readonly #ctx: Ctx;
  readonly #instances: AppInstances;

  constructor(ctx: Ctx, instances: AppInstances) {
    this.#ctx = ctx;
    this.#instances = instances;
  }

  /** The application instance of a visit: the ingress's word, or the host's own where that is allowed (G-BFF-05). */
  async instanceOf({ hostname, tenant }: Visit): Promise<string | undefined> {
    if (tenant.appInstanceId || tenant.envId || !this.#ctx.config.hostnameFallback) return tenant.appInstanceId;
    if (hostname === this.#ctx.platform.host('bff.console')) return SYSTEM.consoleAppId;
    const found = await this.#ctx.services.registry.resolveHostname({ query: { hostname } }).catch(() => undefined);
    return found?.app_instance_id ?? undefined;
  }

  async of(visit: Visit): Promise<App | undefined> {
    const instance = await this.instanceOf(visit);
    return instance === undefined ? undefined : this.byInstance(instance);
  }

  async byInstance(appInstanceId: string): Promise<App | undefined> {
    if (appInstanceId !== SYSTEM.consoleAppId) return this.#instances.find(appInstanceId);
    return {
      appInstanceId,
      envId: SYSTEM.envId,
      clientId: CONSOLE_CLIENT,
      issuerHost: this.#ctx.platform.host('auth'),
      gate: { group: SYSTEM.consoleGroup, orInvited: true },
      allowSignup: false,
      services: 'all',
      scopes: undefined,
    };
  }

  /** Where the application's pages live: the gateway's host without its first label. */
  originOf({ hostname }: Pick<Visit, 'hostname'>): string {
    return this.#ctx.platform.publicOrigin(hostname.startsWith('bff.') ? hostname.slice('bff.'.length) : hostname);
  }
}
