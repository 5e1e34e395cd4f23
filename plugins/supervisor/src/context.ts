import type { PlatformContext } from '@platform/sdk';
import type { supervisor } from '../contract/index.ts';

export type SupervisorContext = PlatformContext<typeof supervisor>;
