import type { Context, Tx } from '@platform/sdk';
import type { statistics } from '../contract/index.ts';

export type Ctx = Context<typeof statistics>;
export type StatisticsTx = Tx<typeof statistics>;
