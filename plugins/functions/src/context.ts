import type { registry } from '@platform/registry/contract';
import type { statistics } from '@platform/statistics/contract';
import type { storage } from '@platform/storage/contract';
import type { PlatformContext } from '@platform/sdk';
import type { functions } from '../contract/index.ts';

export type FuncContext = PlatformContext<
  typeof functions,
  { readonly registry: typeof registry; readonly storage: typeof storage; readonly statistics: typeof statistics }
>;
