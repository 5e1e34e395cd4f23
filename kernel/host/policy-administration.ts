import { get, post, put, del, type Caller, isProblem, ProblemError, type Request, reply, Type } from '@platform/sdk';
import { kernelProblem } from '../base/kernel-problem.ts';
import type { MountedRoute, RouteHandler } from '../http/service-app.ts';
import { actionKey, canonicalScope } from '../identity/scope-name.ts';
import { policyFaults } from '../policy/cedar.ts';
import type { PolicyEngine } from '../policy/policy-engine.ts';
import type { PolicyKind, PolicyPort } from '../policy/policy-port.ts';
import type { PolicySnapshot } from '../policy/policy-data.ts';

const LIMIT = 65_536;
const Op = Type.Optional(Type.Union([Type.Literal('upsert'), Type.Literal('delete')]));
const Scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);
const SetBody = Type.Object({
  op: Op,
  policy_set_id: Type.Optional(Type.String()),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
  mode: Type.Optional(Type.Union([Type.Literal('shadow'), Type.Literal('enforced')])),
  policies: Type.Optional(Type.String()),
});
const RelationBody = Type.Object({
  op: Op,
  relation_id: Type.Optional(Type.String()),
  subject: Type.Optional(Type.String({ pattern: '^(user|workload|group):.+$' })),
  relation: Type.Optional(Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' })),
  object: Type.Optional(Type.String({ pattern: '^[a-z][a-z0-9_]*:.+$' })),
});
const AttributeBody = Type.Object({
  op: Op,
  attribute_id: Type.Optional(Type.String()),
  principal: Type.Optional(Type.String({ pattern: '^(user|workload):.+$' })),
  key: Type.Optional(Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' })),
  value: Type.Optional(Type.Union([Scalar, Type.Array(Scalar, { maxItems: 100 })])),
});
const DryRun = Type.Object({ principal: Type.String(), action: Type.String(), resource: Type.Optional(Type.String()), context: Type.Optional(Type.Object({}, { additionalProperties: true })) });

type AdminRequest = Request<unknown, { id?: string; limit?: number; cursor?: string }, Record<string, unknown>, Caller> & { targetEnvId: string };

export interface PolicyAdministrationOptions {
  readonly service: string;
  readonly vertical: string;
  readonly actions: readonly string[];
  readonly port: PolicyPort;
  readonly engine: PolicyEngine;
  /** Live scopes of somebody else, for the dry run. */
  readonly scopesOf: (principal: { kind: 'user' | 'workload'; id: string }, envId: string) => Promise<ReadonlySet<string>>;
}

/** The administration endpoints every service gets: policy sets, relations, attributes and decisions of (environment, service) (G-K-10). */
export function policyAdministration(options: PolicyAdministrationOptions): Record<string, MountedRoute> {
  const { service, vertical, actions, engine } = options;
  const port = speakingFor(service, options.port);
  const read = `${service}:policy:read`;
  const admin = `${service}:policy:admin`;
  const known = actions.map(action => actionKey(vertical, action));
  const by = (caller: Caller) => (caller.kind === 'machine' ? `workload:${caller.subject}` : `user:${caller.userId}`);

  const write: Record<PolicyKind, (request: AdminRequest, body: Record<string, unknown>) => Promise<unknown>> = {
    'policy-sets': async ({ caller, targetEnvId }, body) => {
      const { name, policies, policy_set_id: id, mode } = body as { name?: string; policies?: string; policy_set_id?: string; mode?: 'shadow' | 'enforced' };
      need({ name, policies });
      const faults = policyFaults(policies as string, known);
      if (faults.length > 0) throw kernelProblem('policy_invalid', { extra: { errors: faults }, detail: 'Nothing was stored; errors says what Cedar found.' });
      return port.upsertSet({
        env_id: targetEnvId,
        service,
        name: name as string,
        policies: policies as string,
        ...(id ? { policy_set_id: id } : {}),
        ...(mode ? { mode } : {}),
        updated_by: by(caller),
      });
    },
    relations: async ({ targetEnvId }, body) => {
      const { subject, relation, object } = body as Record<string, string | undefined>;
      need({ subject, relation, object });
      return port.upsertRelation({ env_id: targetEnvId, service, subject: subject as string, relation: relation as string, object: object as string });
    },
    attributes: async ({ targetEnvId }, body) => {
      const { principal, key, value } = body as { principal?: string; key?: string; value?: string | number | boolean };
      need({ principal, key, value });
      return port.upsertAttribute({ env_id: targetEnvId, service, principal: principal as string, key: key as string, value: value as string });
    },
  };

  const routes: Record<string, MountedRoute> = {};
  const mount = (name: string, route: MountedRoute['route'], handler: (request: AdminRequest) => Promise<unknown>) => {
    routes[name] = { route, handler: handler as unknown as RouteHandler };
  };
  const query = { id: Type.Optional(Type.String()), service: Type.Optional(Type.String()), limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })), cursor: Type.Optional(Type.String()) };

  for (const [kind, body, member, idMember] of [
    ['policy-sets', SetBody, 'sets', 'policy_set_id'],
    ['relations', RelationBody, 'relations', 'relation_id'],
    ['attributes', AttributeBody, 'attributes', 'attribute_id'],
  ] as const) {
    const path = `/v1/admin/${kind}`;
    const hidden = service !== 'sys';
    const apply = async (request: AdminRequest) => {
      const sent = request.body ?? {};
      const id = request.query.id ?? (sent[idMember] as string | undefined);
      if (sent['op'] !== 'delete') {
        const answer = await write[kind](request, id ? { ...sent, [idMember]: id } : sent);
        await engine.reload(request.targetEnvId).catch(() => undefined);
        return answer;
      }
      if (!id) throw kernelProblem('validation_failed', { extra: { errors: [{ pointer: `/${idMember}`, code: 'required', message: 'is required to delete' }] } });
      return remove(request, id);
    };
    const remove = async (request: AdminRequest, id: string) => {
      await port.remove({ kind, env_id: request.targetEnvId, service, id, updated_by: by(request.caller) });
      await engine.reload(request.targetEnvId).catch(() => undefined);
      return reply(undefined, { status: 204 });
    };
    mount(`${member}List`, get(path, { summary: `List ${kind}`, gate: { any: [read, admin] }, query, target: 'required', hidden }), async ({ query: asked, targetEnvId }) => {
      const rows = (await port.snapshot(service, targetEnvId))[member as keyof PolicySnapshot] as readonly object[];
      if (asked.id) return rows.find(row => (row as Record<string, unknown>)[idMember] === asked.id) ?? missing(asked.id);
      return { items: rows.slice(0, asked.limit ?? 50), next_cursor: null };
    });
    mount(`${member}Write`, post(path, { summary: `Write ${kind}`, gate: admin, query, body, target: 'required', limit: LIMIT, hidden }), apply);
    mount(`${member}Put`, put(path, { summary: `Replace ${kind}`, gate: admin, query, body, target: 'required', limit: LIMIT, hidden }), apply);
    mount(`${member}Delete`, del(path, { summary: `Delete ${kind}`, gate: admin, query, target: 'required', hidden }), request => (request.query.id ? remove(request, request.query.id) : missing('')));
  }

  mount(
    'decisionsList',
    get('/v1/admin/decisions', { summary: 'Latest decisions of this process', gate: { any: [read, admin] }, query, target: 'required', hidden: true }),
    async ({ query: asked, targetEnvId }) => ({
      items: engine
        .decisions()
        .filter(decision => decision.env_id === targetEnvId)
        .slice(0, asked.limit ?? 50),
      next_cursor: null,
    }),
  );
  mount(
    'decisionsDryRun',
    post('/v1/admin/decisions', { summary: 'Say what would be decided, and why', gate: { any: [read, admin] }, body: DryRun, target: 'required', limit: LIMIT, hidden: true }),
    async ({ body, targetEnvId, correlationId }) => {
      const { principal, action, resource } = body as { principal: string; action: string; resource?: string };
      const [kind, id] = splitOnce(principal);
      if ((kind !== 'user' && kind !== 'workload') || !id)
        throw kernelProblem('validation_failed', { extra: { errors: [{ pointer: '/principal', code: 'pattern', message: 'is user:{id} or workload:{name}' }] } });
      const [type, resourceId] = resource ? splitOnce(resource) : [];
      const scopes = await options.scopesOf({ kind, id }, targetEnvId);
      const caller = (kind === 'user' ? { kind, userId: id, subject: id } : { kind: 'machine', subject: id }) as Caller;
      return engine.explain({
        identity: { caller, principal: kind === 'user' ? 'user' : 'machine', scopes },
        action: canonicalScope(action),
        envId: targetEnvId,
        resource: type && resourceId ? { type, id: resourceId } : undefined,
        correlationId,
      });
    },
  );
  return routes;
}

/** What the store refuses of a write (a row of the platform, a row that is not there) is this service's answer too, not its failure. */
function speakingFor(service: string, port: PolicyPort): PolicyPort {
  const speaking =
    <A extends readonly unknown[], T>(work: (...input: A) => Promise<T>) =>
    async (...input: A): Promise<T> => {
      try {
        return await work(...input);
      } catch (error) {
        if (!isProblem(error) || ![404, 409].includes(error.status)) throw error;
        throw new ProblemError(service, error.code, error, error.detail === undefined ? {} : { detail: error.detail });
      }
    };
  return {
    snapshot: speaking(port.snapshot),
    upsertSet: speaking(port.upsertSet),
    upsertRelation: speaking(port.upsertRelation),
    upsertAttribute: speaking(port.upsertAttribute),
    remove: speaking(port.remove),
  };
}

function need(members: Readonly<Record<string, unknown>>): void {
  const errors = Object.entries(members)
    .filter(([, value]) => value === undefined)
    .map(([name]) => ({ pointer: `/${name}`, code: 'required', message: 'is required' }));
  if (errors.length > 0) throw kernelProblem('validation_failed', { extra: { errors } });
}
function missing(id: string): never {
  throw kernelProblem('not_found', { detail: `No row ${id} in this environment.` });
}
function splitOnce(text: string): [string, string] {
  const at = text.indexOf(':');
  return [text.slice(0, at), text.slice(at + 1)];
}
