import type { registry } from '@platform/registry/contract';
import type { Context, Tx } from '@platform/sdk';
import type { identity } from '../contract/index.ts';

export type Contract = typeof identity;
export type Ctx = Context<Contract, { registry: typeof registry }>;
export type IdentityTx = Tx<Contract>;
