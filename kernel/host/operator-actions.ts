import type { TSchema } from '@platform/sdk';
import type { Manifest } from '../base/manifest.ts';
import { actionKey } from '../identity/tokens/scope-name.ts';

const PARAMETER = /\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/**
 * Routes that a service offers as actions of operators, as the registry keeps them (G-BFF-06): what a caller gives is the path's, the
 * query's and the body's members together.
 */
export function operatorActions({ id, vertical, routes }: Manifest): object[] {
  return Object.entries(routes).flatMap(([name, { door, method, path, options }]) => {
    if (door !== 'request' || options.dispatch !== true || typeof options.gate !== 'string') return [];
    const body = options.body as (TSchema & { properties?: object; required?: readonly string[] }) | undefined;
    const inPath = [...path.matchAll(PARAMETER)].map(([, parameter]) => parameter as string);
    const params_schema = {
      type: 'object',
      properties: {
        ...options.query,
        ...body?.properties,
        ...Object.fromEntries(inPath.map(parameter => [parameter, { type: 'string', minLength: 1, maxLength: 300 }])),
      },
      required: [...new Set([...inPath, ...(body?.required ?? [])])],
      additionalProperties: false,
    };
    return [
      {
        action: `${id}:${name}`,
        service: id,
        method,
        path,
        params_schema,
        policy_action: actionKey(vertical, options.gate),
        target_env: true,
      },
    ];
  });
}
