import { type ActionCall, isId, type PermittedCall, type PlatformActions, ProblemError, type UserCaller } from '@platform/sdk';
import { kernelProblem, type KernelProblemCode } from '../../../base/kernel-problem.ts';
import { admittedAs } from '../../../http/operation.ts';
import { canonicalScope } from '../../../identity/tokens/scope-name.ts';
import { registrations } from '../../platform-calls.ts';
import { capability } from '../capability.ts';
import type { PluginContextParts } from '../plugin-context-parts.ts';
import { correlationOf } from '../transactions.ts';
import { actionRequest, type ActionRequest, onTheWire } from './action-request.ts';
import { callBack } from './call-back.ts';
import { type KnownAction, RegisteredActions } from './registered-actions.ts';

type Ready = Omit<PermittedCall, 'path' | 'headers' | 'body' | 'action'> & {
  readonly action: KnownAction;
  readonly request: ActionRequest;
};
type Refuse = (code: KernelProblemCode, more: { detail: string; extra?: Record<string, unknown> }) => ProblemError;

/** Calls of what is known only at run time, as a plugin makes them. `follow` tells that the registered services changed. */
export function pluginActions(parts: PluginContextParts, follow: (changed: () => void) => void): PlatformActions {
  const { manifest, caller, workloadOf, clock, log, manifests, pools } = parts;
  let known: RegisteredActions | undefined;
  const registered = (): RegisteredActions => {
    if (known) return known;
    const actions = new RegisteredActions({ read: () => registrations(caller, workloadOf(undefined)), manifests, clock, log });
    follow(() => actions.forget());
    known = actions;
    return actions;
  };
  const backends = capability(manifest, 'backends', pools.facade(workloadOf));
  return {
    run: async (name, call) => {
      const { action, request, targetEnvId } = await permitted(parts, await registered().find(name), name, call);
      const { service, method, path } = action;
      return caller.call(
        workloadOf(undefined),
        { service, name: name.slice(service.length + 1), route: { method, path }, problems: {} },
        {
          params: request.pathParams,
          query: request.query,
          ...(request.body ? { body: request.body } : {}),
          ...(targetEnvId === undefined ? {} : { targetEnvId }),
          ...(call.idempotencyKey === undefined ? {} : { idempotencyKey: call.idempotencyKey }),
          ...(call.signal === undefined ? {} : { signal: call.signal }),
        },
      );
    },
    send: async (name, call, send) => {
      const { request, ...ready } = await permitted(parts, await registered().find(name), name, call);
      return send({ ...ready, ...onTheWire(ready.action, request) });
    },
    callBack: call => callBack({ backends, clock }, call),
  };
}

/** Finds out that an action may be called as asked: it is there, its parameters fit, and whoever it is for may do it there. */
async function permitted(parts: PluginContextParts, action: KnownAction | undefined, name: string, call: ActionCall): Promise<Ready> {
  const refuse = refusals(parts);
  if (!action) throw refuse('action_not_found', { detail: `No service registered ${name.slice(0, 100)}.` });
  const { params = {}, onBehalfOf } = call;
  const targetEnvId = requireTarget(action, call, refuse);
  const envId = targetEnvId ?? onBehalfOf.envId;
  if (envId === undefined) throw refuse('target_env_required', { detail: 'Name the environment in which the action takes effect.' });
  const complete = namesEnv(action) ? { ...params, env_id: envId } : params;
  if (!(await mayDo(parts, action, onBehalfOf, envId)))
    throw refuse('policy_denied', {
      detail: `You may not do this in the environment: ${action.service} asks for ${action.policy_action}.`,
    });
  const request = actionRequest(action, complete);
  if (!request) throw refuse('malformed', { detail: 'A parameter of the path is empty or is no name.' });
  return { action, params: complete, envId, targetEnvId, request };
}

/** Asks for parameters that fit, and gives the one environment that is named, if any is. */
function requireTarget(action: KnownAction, { params = {}, targetEnvId: target }: ActionCall, refuse: Refuse): string | undefined {
  const faults =
    typeof params === 'object' && params !== null && !Array.isArray(params)
      ? action.faults(params)
      : [{ pointer: '/params', code: 'type', message: 'must be an object' }];
  if (faults.length > 0)
    throw refuse('malformed', {
      detail: 'The parameters do not fit the action; errors says which.',
      extra: { errors: faults.slice(0, 10) },
    });
  if (target !== undefined && !isId(target)) throw refuse('malformed', { detail: 'target_env_id is the id of an environment.' });
  if (target !== undefined && action.target_env !== true) throw refuse('malformed', { detail: 'This action takes no target environment.' });
  const named = namesEnv(action) ? params['env_id'] : undefined;
  // One request is about one environment: policy is asked where the call will have its effect.
  if (typeof named === 'string' && target !== undefined && named !== target)
    throw refuse('target_mismatch', { detail: 'params.env_id and target_env_id differ.' });
  return target ?? (typeof named === 'string' ? named : undefined);
}

/** By the rights that the person has at this moment, and by no more than the credential of the request says. */
async function mayDo(
  { engine, identityOf, manifest }: PluginContextParts,
  { policy_action }: KnownAction,
  onBehalfOf: UserCaller,
  envId: string,
): Promise<boolean> {
  const action = canonicalScope(policy_action);
  if (admittedAs(onBehalfOf)?.scopes.has(action) === false) return false;
  const caller = onBehalfOf.envId === envId ? onBehalfOf : { ...onBehalfOf, envId };
  return engine.allows({ identity: await identityOf(caller), action, envId, correlationId: correlationOf(manifest.id) });
}

const namesEnv = ({ params_schema: schema }: KnownAction): boolean => 'env_id' in ((schema as { properties?: object }).properties ?? {});

/** A refusal in the words of the calling service, where its contract has them. */
function refusals({ manifest }: PluginContextParts): Refuse {
  return (code, more) => {
    const own = manifest.problems[code];
    return own ? new ProblemError(manifest.id, code, own, more) : kernelProblem(code, more);
  };
}
