import type { AnyContract, PlatformContext } from '@platform/sdk';
import { actionKey } from '../../identity/tokens/scope-name.ts';
import { inquire } from '../../policy/policy-inquiry.ts';
import { correlationOf } from './transactions.ts';
import { capability } from './capability.ts';
import { policyRowsChanged } from '../policy/policy-events.ts';
import { policyWriter } from '../policy/policy-writer.ts';
import type { PluginContextParts } from './plugin-context-parts.ts';

/** What a plugin may ask of policies, finer than the gates of its routes. */
export function pluginPolicy({
  manifest,
  engine,
  policy,
  tellPolicy,
  identityOf,
  log,
}: PluginContextParts): PlatformContext<AnyContract>['policy'] {
  return {
    attributes: (principal, envId) => engine.attributes(principal, envId),
    setAttributes: async (principal, envId, values, caller) => {
      const change = await policy.putAttributes({ env_id: envId, service: manifest.id, principal, values, ...policyWriter(caller) });
      await tellPolicy?.(envId, policyRowsChanged(manifest.id, 'attributes'));
      await engine.reload(envId).catch(error => log.warn({ env_id: envId, err: error }, 'attributes were written and not read again'));
      return change;
    },
    allows: async (caller, action, resource) =>
      engine.allows({
        identity: await identityOf(caller),
        action: actionKey(manifest.vertical, action),
        envId: caller.envId,
        resource,
        correlationId: correlationOf(manifest.id),
      }),
    explain: inquiry =>
      inquire(inquiry, {
        load: capability(manifest, 'policy-store', policy).snapshot,
        log,
        correlationId: correlationOf(manifest.id),
      }),
  };
}

/** Who sends a request to a raw door, and what they may. */
export function pluginAuth({ manifest, engine, verify }: PluginContextParts): PlatformContext<AnyContract>['auth'] {
  return {
    verify: async request => {
      const identity = await verify(request);
      if (!identity) return undefined;
      const { caller } = identity;
      return {
        caller,
        permits: action =>
          engine.allows({
            identity,
            action: actionKey(manifest.vertical, action),
            envId: caller.envId,
            correlationId: correlationOf(manifest.id),
          }),
      };
    },
  };
}
