import type { Caller } from '@platform/sdk';
import type { PolicyWriter } from '../../policy/policy-port.ts';

/** Whom the registry's audit trail names for a change of policies. */
export const policyWriter = (caller: Caller): PolicyWriter =>
  caller.kind === 'machine'
    ? { updated_by: `workload:${caller.subject}` }
    : { updated_by: `user:${caller.userId}`, ...(caller.kind === 'delegated' ? { act: caller.subject } : {}) };
