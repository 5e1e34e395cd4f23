import type { Caller, PlatformContext } from '@platform/sdk';
import type { eventBus } from '../contract/index.ts';
import { isFamily } from './stream/names.ts';

export type EventBusContext = PlatformContext<typeof eventBus>;

interface Asked {
  readonly caller: Caller;
  readonly targetEnvId: string | undefined;
}

/**
 * The environment a request is about: a person's own, or the one a workload names. Page data name it by `target_env_id`, which the kernel
 * has authorised.
 */
export function environmentOf(ctx: EventBusContext, { caller, targetEnvId }: Asked, given: string | undefined): string {
  const asked = given ?? targetEnvId;
  if (caller.kind !== 'user') {
    if (asked === undefined) throw ctx.problem('env_required', { detail: 'A workload names the environment in env_id.' });
    return asked;
  }
  if (asked !== undefined && asked !== caller.envId && asked !== targetEnvId)
    throw ctx.problem('env_mismatch', { detail: 'The token is for another environment.' });
  const own = asked ?? caller.envId;
  if (own === undefined) throw ctx.problem('env_required');
  return own;
}

export function familyOf(ctx: EventBusContext, family: string): string {
  if (!isFamily(family))
    throw ctx.problem('invalid_stream_family', {
      detail: 'A stream family has 1 to 64 characters of a-z, A-Z, 0-9, dot, underscore and hyphen, and is not dlq, delayed or jti.',
    });
  return family;
}

/** Two subjects with the same group name do not share a group. */
export const groupOf = ({ subject }: Caller, group: string): string => `${subject}.${group}`;

/** Thrown values as one short line without internals. */
export const brief = (error: unknown): string => (error instanceof Error ? ((error as { code?: string }).code ?? error.name) : 'unknown');
