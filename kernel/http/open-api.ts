import { type AnyRoute, ERROR_FORMS, gateActions, type ProblemDecl } from '@platform/sdk';
import { KERNEL_PROBLEMS } from '../base/kernel-problem.ts';
import type { Manifest } from '../base/manifest.ts';

const COMMON = ['validation_failed', 'unauthenticated', 'policy_denied'] as const;
const VERSIONED = ['precondition_failed'] as const;

/** OpenAPI 3.1 of a service: JSON Schema goes in unchanged, gates become security, problems become responses (house 8). */
export function openApi(manifest: Manifest, routes: Readonly<Record<string, AnyRoute>>): object {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [name, route] of Object.entries(routes)) {
    if (route.options.hidden || route.door === 'listener') continue;
    const path = route.path.replaceAll('{*', '{');
    paths[path] ??= {};
    const methods = route.method === 'ANY' ? ['get', 'post'] : [route.method.toLowerCase()];
    for (const method of methods)
      (paths[path] as Record<string, unknown>)[method] = operation(manifest, route.method === 'ANY' ? `${name}.${method}` : name, route);
  }
  return {
    openapi: '3.1.0',
    info: { title: manifest.title, version: manifest.version },
    servers: [{ url: '/' }],
    paths: Object.fromEntries(Object.entries(paths).sort(([left], [right]) => (left < right ? -1 : 1))),
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        workload: { type: 'mutualTLS' },
      },
      schemas: { Problem: PROBLEM },
    },
  };
}

function operation(manifest: Manifest, name: string, { door, path, options }: AnyRoute): object {
  const actions = gateActions(options.gate);
  const declared = (options.problems ?? []).map(code => [code, manifest.problems[code] as ProblemDecl] as const);
  const kernel = [...COMMON.filter(code => actions || code === 'validation_failed'), ...(options.ifMatch ? VERSIONED : [])].map(
    code => [code, KERNEL_PROBLEMS[code] as ProblemDecl] as const,
  );
  const problems = new Map<number, string[]>();
  for (const [code, decl] of [...declared, ...kernel]) problems.set(decl.status, [...(problems.get(decl.status) ?? []), decl.code ?? code]);
  const form = options.errors && ERROR_FORMS[options.errors];
  const refusal = form
    ? { [mediaOf(form.type)]: { schema: form.schema } }
    : { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } };
  const success = options.status ?? (options.returns ? 200 : 204);
  return {
    operationId: `${manifest.id}.${name}`,
    summary: options.summary,
    ...(actions
      ? { security: actions.length > 0 ? [{ bearer: [] }, { workload: [] }] : [{ bearer: [] }], 'x-actions': actions }
      : { security: [] }),
    parameters: [
      ...[...path.matchAll(/\{\*?([A-Za-z_]+)\}/g)].map(([, parameter]) => ({
        name: parameter,
        in: 'path',
        required: true,
        schema: options.params?.[parameter as string] ?? { type: 'string' },
      })),
      ...Object.entries(options.query ?? {}).map(([parameter, schema]) => ({
        name: parameter,
        in: 'query',
        required: !('~optional' in (schema as object)),
        schema,
      })),
      ...(options.env && options.env !== 'any'
        ? [{ name: 'target_env_id', in: 'query', required: options.env === 'target', schema: { type: 'string' } }]
        : []),
      ...(options.ifMatch ? [{ name: 'If-Match', in: 'header', required: false, schema: { type: 'string' } }] : []),
    ],
    ...(door === 'upload' ? { requestBody: { required: true, content: { 'application/octet-stream': {} } } } : {}),
    ...(options.body ? { requestBody: { required: true, content: { 'application/json': { schema: options.body } } } } : {}),
    responses: {
      [success]: { description: 'Success', ...(options.returns ? { content: { 'application/json': { schema: options.returns } } } : {}) },
      ...Object.fromEntries([...problems].map(([status, codes]) => [status, { description: codes.join(', '), content: refusal }])),
    },
  };
}

const mediaOf = (type: string): string => type.split(';')[0] as string;

const PROBLEM = {
  type: 'object',
  required: ['type', 'title', 'status', 'code', 'correlation_id'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    code: { type: 'string' },
    detail: { type: 'string' },
    instance: { type: 'string' },
    correlation_id: { type: 'string' },
    reason: { type: 'string' },
    retry_after: { type: 'number' },
    errors: {
      type: 'array',
      items: { type: 'object', properties: { pointer: { type: 'string' }, code: { type: 'string' }, message: { type: 'string' } } },
    },
  },
};
