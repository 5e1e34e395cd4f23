import type { Context } from '@platform/sdk';
import type { supervisor } from '../contract/index.ts';

export type SupervisorContext = Context<typeof supervisor>;
