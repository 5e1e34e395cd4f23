import type { Caller } from './request/caller.ts';

/** How a caller is named as an owner: a person's id, or a workload's name. */
export const nameOf = (caller: Caller): string => (caller.kind === 'machine' ? caller.subject : caller.userId);
