import type { Server } from 'node:net';
import type { Backends, KeyValue } from '../../contract/capabilities.ts';
import type { AnyContract } from '../../contract/contract.ts';
import type { PlatformActions } from '../../request/actions.ts';
import type { Sender } from '../../request/caller.ts';
import type { Delivery } from '../../request/delivery.ts';
import type { Request } from '../../request/request.ts';
import type { Context } from '../context.ts';
import type { Policies } from '../policies.ts';
import type { TokenChecks } from '../token-claims.ts';
import type { ExplainedDecision, PolicyInquiry } from './policy-inquiry.ts';
import type { ProcessHost } from './process-host.ts';
import type { SigningAuthority } from './signing-authority.ts';

/** What services of the platform may touch beside what every plugin may. The contract names the capabilities among it. */
export interface PlatformContext<C extends AnyContract, U extends Readonly<Record<string, AnyContract>> = Readonly<Record<never, never>>>
  extends Context<C, U> {
  readonly events: {
    /**
     * Hears the events of a family from now on, in this process alone, until it is disposed: for what is known only at run time. `event`
     * names one of them. Everything else is declared under `consumes`. A handler that throws is given the
     * event again. `missed` is told once it hears, for what came before, and when the bus cut events before they were read.
     */
    subscribe(
      wanted: { readonly family: string; readonly event?: string; readonly concurrency?: number; readonly missed?: () => void },
      handler: (delivery: Delivery<Readonly<Record<string, unknown>>>) => Promise<void>,
    ): AsyncDisposable;
  };
  readonly policy: Policies & {
    /** What any service would decide for others, and by which policies; records nothing (capability `policy-store`). */
    explain(inquiry: PolicyInquiry): Promise<readonly ExplainedDecision[]>;
  };
  readonly actions: PlatformActions;
  readonly platform: Context<C, U>['platform'] & {
    readonly dataDir: string;
    /** The address of this machine in the fleet. */
    readonly ip: string;
  };
  readonly kv: KeyValue;
  readonly backends: Backends;
  /** Signing, for the certificate authority alone (capability `authority`). */
  readonly authority: SigningAuthority;
  /**
   * Has a server listen for a `listener` door. True where the socket is shared with the instance that comes next: leave it by
   * `net.Server.prototype.close`, which drops nobody who was accepted.
   */
  listen(door: string, server: Server, at: { readonly port: number; readonly address: string }): Promise<boolean>;
  /** Processes of this machine, for the supervisor alone (capability `processes`). */
  readonly processes: ProcessHost;
  readonly auth: {
    /**
     * Who sent a request, found the way the gate finds it, for doors that admit by more than a gate. `undefined` where nothing was shown; a
     * token bound to a key is refused.
     */
    verify(request: Pick<Request, 'headers' | 'peer'>): Promise<Sender | undefined>;
  };
  readonly tokens: TokenChecks;
}

type IsAny<T> = 0 extends 1 & T ? true : false;

/** What a plugin is given: a contract that names a vertical other than the platform is a vertical's. */
export type ContextOf<C extends AnyContract, U extends Readonly<Record<string, AnyContract>>> =
  IsAny<C> extends true
    ? PlatformContext<C, U>
    : C['base'] extends { readonly vertical: infer V extends string }
      ? V extends 'platform'
        ? PlatformContext<C, U>
        : Context<C, U>
      : PlatformContext<C, U>;
