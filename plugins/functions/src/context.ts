import type { registry } from '@platform/registry/contract';
import type { statistics } from '@platform/statistics/contract';
import type { storage } from '@platform/storage/contract';
import type { Context } from '@platform/sdk';
import type { functions } from '../contract/index.ts';

export type FuncContext = Context<
  typeof functions,
  { readonly registry: typeof registry; readonly storage: typeof storage; readonly statistics: typeof statistics }
>;
