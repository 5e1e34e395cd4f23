import type { eventBus } from '@platform/event-bus/contract';
import type { identity } from '@platform/identity/contract';
import type { registry } from '@platform/registry/contract';
import type { PlatformContext } from '@platform/sdk';
import type { gateway } from '../contract/index.ts';

export type Ctx = PlatformContext<typeof gateway, { registry: typeof registry; identity: typeof identity; bus: typeof eventBus }>;
export type ProblemCode = keyof typeof gateway.problems;
