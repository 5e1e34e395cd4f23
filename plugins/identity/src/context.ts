import type { notification } from '@platform/notification/contract';
import type { registry } from '@platform/registry/contract';
import type { PlatformContext, PluginBehaviour, Tx } from '@platform/sdk';
import type { identity } from '../contract/index.ts';

export type Contract = typeof identity;
export type Ctx = PlatformContext<Contract, { notification: typeof notification; registry: typeof registry }>;
export type IdentityTx = Tx<Contract>;
/** Handlers of some of the routes. */
export type Handlers<Names extends keyof Contract['routes']> = Pick<
  PluginBehaviour<Contract, { registry: typeof registry }>['routes'],
  Names
>;
