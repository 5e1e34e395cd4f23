import type { gateway } from '@platform/gateway/contract';
import type { registry } from '@platform/registry/contract';
import type { PlatformContext, PluginBehaviour, Tx } from '@platform/sdk';
import type { notification } from '../contract/index.ts';

export type Contract = typeof notification;
export type Uses = { gateway: typeof gateway; registry: typeof registry };
export type Ctx = PlatformContext<Contract, Uses>;
export type PostTx = Tx<Contract>;
/** Handlers of some of the routes. */
export type Handlers<Names extends keyof Contract['routes']> = Pick<PluginBehaviour<Contract, Uses>['routes'], Names>;
/** The wire form of a moment. */
export const nowOf = (ctx: Pick<Ctx, 'clock'>): string => ctx.clock.now().toISOString();
