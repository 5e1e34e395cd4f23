import type { identity } from '@platform/identity/contract';
import type { PlatformContext, RequestOf, Tx } from '@platform/sdk';
import type { workflow } from '../contract/index.ts';

export type Ctx = PlatformContext<typeof workflow, { readonly identity: typeof identity }>;
export type WorkflowTx = Tx<typeof workflow>;
export type Of<R extends keyof (typeof workflow)['routes']> = RequestOf<typeof workflow, R>;
