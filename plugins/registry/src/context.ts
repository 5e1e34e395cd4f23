import type { identity } from '@platform/identity/contract';
import type { notification } from '@platform/notification/contract';
import type { PlatformContext, PluginBehaviour, Tx } from '@platform/sdk';
import type { registry } from '../contract/index.ts';

export type Contract = typeof registry;
export type Ctx = PlatformContext<Contract, { identity: typeof identity; notification: typeof notification }>;
export type RegistryTx = Tx<Contract>;
/** Handlers of some of the routes. */
export type Handlers<Names extends keyof Contract['routes']> = Pick<
  PluginBehaviour<Contract, { identity: typeof identity }>['routes'],
  Names
>;
