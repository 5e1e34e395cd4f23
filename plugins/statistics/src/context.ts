import type { PlatformContext, Tx } from '@platform/sdk';
import type { statistics } from '../contract/index.ts';

export type Ctx = PlatformContext<typeof statistics>;
export type StatisticsTx = Tx<typeof statistics>;
