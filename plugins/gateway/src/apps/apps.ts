import { SYSTEM } from '@platform/sdk';
import type { AppInstances } from './app-instances.ts';
import type { Ctx } from '../context.ts';

/** What an exchange says about where it was sent, whatever its transport. */
export interface Visit {
  readonly hostname: string;
  readonly tenant: { readonly envId?: string; readonly appInstanceId?: string };
  readonly ip: string;
  readonly header: (name: string) => string | undefined;
}

/** An application that people reach through this gateway. */
export interface App {
  readonly appInstanceId: string;
  readonly envId: string;
  readonly clientId: string;
  /** Host of the identity service that the application's people sign in at. */
  readonly issuerHost: string;
  /** `open`: everybody with an account of the environment; otherwise only members of a group (F-A, G-SYS-08). */
  readonly gate: 'open' | { readonly group: string /** Who is invited may come in before, to accept (D-02). */; readonly orInvited?: true };
  readonly allowSignup: boolean;
  /** Services it may call; the console's are all that exist (C11). */
  readonly services: 'all' | ReadonlySet<string>;
  readonly scopes: ReadonlySet<string> | undefined;
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
    if (hostname === `bff.console.ops.sys.${this.#ctx.platform.domain}`) return SYSTEM.consoleAppId;
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
      issuerHost: `auth.ops.sys.${this.#ctx.platform.domain}`,
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
