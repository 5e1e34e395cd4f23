import type { PlatformContext, RequestOf, Tx } from '@platform/sdk';
import type { scheduler } from '../contract/index.ts';

export type Ctx = PlatformContext<typeof scheduler>;
export type SchedulerTx = Tx<typeof scheduler>;
export type Of<R extends keyof (typeof scheduler)['routes']> = RequestOf<typeof scheduler, R>;
