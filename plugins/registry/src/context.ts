import type { identity } from '@platform/identity/contract';
import type { Context, Tx } from '@platform/sdk';
import type { registry } from '../contract/index.ts';

export type Contract = typeof registry;
export type Ctx = Context<Contract, { identity: typeof identity }>;
export type RegistryTx = Tx<Contract>;
