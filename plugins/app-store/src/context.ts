import type { identity } from '@platform/identity/contract';
import type { registry } from '@platform/registry/contract';
import type { scheduler } from '@platform/scheduler/contract';
import { type Caller, type Context, isProblem, type RequestOf, type Tx } from '@platform/sdk';
import type { statistics } from '@platform/statistics/contract';
import type { storage } from '@platform/storage/contract';
import type { workflow } from '@platform/workflow/contract';
import type { appStore } from '../contract/index.ts';

export type Contract = typeof appStore;
export type Ctx = Context<
  Contract,
  {
    readonly identity: typeof identity;
    readonly registry: typeof registry;
    readonly storage: typeof storage;
    readonly statistics: typeof statistics;
    readonly workflow: typeof workflow;
    readonly scheduler: typeof scheduler;
  }
>;
export type StoreTx = Tx<Contract>;
export type Of<R extends keyof Contract['routes']> = RequestOf<Contract, R>;

/** How a caller is named as an owner: a person's id, or a workload's name. */
export const nameOf = (caller: Caller): string => (caller.kind === 'machine' ? caller.subject : caller.userId);

/** Whether another service refused with one of these codes. */
export const isRefusal = (error: unknown, ...codes: readonly string[]): boolean => isProblem(error) && codes.includes(error.code);

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const isId = (text: string): boolean => UUID.test(text);

/** The unique constraint that a statement broke, if it did. */
export const brokenConstraint = (error: unknown): string | undefined => (error as { constraint_name?: string } | null)?.constraint_name;
