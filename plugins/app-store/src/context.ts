import type { identity } from '@platform/identity/contract';
import type { registry } from '@platform/registry/contract';
import type { scheduler } from '@platform/scheduler/contract';
import { isProblem, type PlatformContext, type PluginBehaviour, type RequestOf, type Tx } from '@platform/sdk';
import type { statistics } from '@platform/statistics/contract';
import type { storage } from '@platform/storage/contract';
import type { workflow } from '@platform/workflow/contract';
import type { appStore } from '../contract/index.ts';

export type Contract = typeof appStore;
type Uses = {
  readonly identity: typeof identity;
  readonly registry: typeof registry;
  readonly storage: typeof storage;
  readonly statistics: typeof statistics;
  readonly workflow: typeof workflow;
  readonly scheduler: typeof scheduler;
};
export type Ctx = PlatformContext<Contract, Uses>;
/** Handlers of some of the routes. */
export type Handlers<Names extends keyof Contract['routes']> = Pick<PluginBehaviour<Contract, Uses>['routes'], Names>;
export type StoreTx = Tx<Contract>;
export type Of<R extends keyof Contract['routes']> = RequestOf<Contract, R>;

/** Whether another service refused with one of these codes. */
export const isRefusal = (error: unknown, ...codes: readonly string[]): boolean => isProblem(error) && codes.includes(error.code);
