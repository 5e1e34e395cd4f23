import type { registry } from '@platform/registry/contract';
import type { statistics } from '@platform/statistics/contract';
import type { storage } from '@platform/storage/contract';
import type { Caller, Context } from '@platform/sdk';
import type { functions } from '../contract/index.ts';

export type FuncContext = Context<
  typeof functions,
  { readonly registry: typeof registry; readonly storage: typeof storage; readonly statistics: typeof statistics }
>;

/** How a caller is named as an owner: a person's id, or a workload's name. */
export const nameOf = (caller: Caller): string => (caller.kind === 'machine' ? caller.subject : caller.userId);
