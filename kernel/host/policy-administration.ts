import { get, post, put, del, type Caller, isProblem, type Logger, ProblemError, type Request, reply, Type } from '@platform/sdk';
import { kernelProblem } from '../base/kernel-problem.ts';
import type { MountedRoute, RouteHandler } from '../http/service-app.ts';
import { policyFaults } from '../policy/cedar.ts';
import type { PolicyEngine } from '../policy/policy-engine.ts';
import { inquire, splitOnce } from '../policy/policy-inquiry.ts';
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
const DryRun = Type.Object({
  principal: Type.String(),
  action: Type.String(),
  resource: Type.Optional(Type.String()),
  context: Type.Optional(Type.Object({}, { additionalProperties: true })),
});

type AdminRequest = Request<
  unknown,
  { id?: string; service?: string; limit?: number; cursor?: string },
  Record<string, unknown>,
  Caller
> & { targetEnvId: string };

export interface PolicyAdministrationOptions {
  readonly service: string;
  /** Actions a policy of a service may name; none for a service nobody knows. */
  readonly actionsOf: (service: string) => readonly string[] | undefined;
  /** Whether this service keeps the policies of all (capability `policy-store`): then `?service=` names whose. */
  readonly keepsAll: boolean;
  readonly port: PolicyPort;
  readonly engine: PolicyEngine;
  readonly log: Logger;
  /** Tells the world of a change of this service's own sets; absent where the registry tells of it. */
  readonly tell?: (envId: string, payload: object) => Promise<void>;
  /** Live scopes of somebody else, for the dry run. */
  readonly scopesOf: (principal: { kind: 'user' | 'workload'; id: string }, envId: string) => Promise<ReadonlySet<string>>;
}

/** The administration endpoints every service gets: policy sets, relations, attributes and decisions of (environment, service) (G-K-10). */
export function policyAdministration(options: PolicyAdministrationOptions): Record<string, MountedRoute> {
  const { service: own, engine, keepsAll } = options;
  const port = speakingFor(own, options.port);
  const read = `${own}:policy:read`;
  const admin = `${own}:policy:admin`;
  /** Whose policies the request is about. */
  const serviceOf = ({ query }: AdminRequest): string => {
    const asked = query.service ?? own;
    if (asked === own || (keepsAll && options.actionsOf(asked))) return asked;
    const message = keepsAll
      ? 'is not a service of this platform'
      : `is not ${own}: every service administers its own, the registry those of all`;
    throw kernelProblem('validation_failed', { extra: { errors: [{ pointer: '/service', code: 'unknown_service', message }] } });
  };
  const reload = async (service: string, envId: string) => {
    if (service === own) await engine.reload(envId).catch(() => undefined);
  };
  const by = (caller: Caller) => (caller.kind === 'machine' ? `workload:${caller.subject}` : `user:${caller.userId}`);

  const write: Record<PolicyKind, (request: AdminRequest, body: Record<string, unknown>) => Promise<unknown>> = {
    'policy-sets': async (request, body) => {
      const { caller, targetEnvId } = request;
      const service = serviceOf(request);
      const {
        name,
        policies,
        policy_set_id: id,
        mode,
      } = body as { name?: string; policies?: string; policy_set_id?: string; mode?: 'shadow' | 'enforced' };
      need({ name, policies });
      const faults = policyFaults(policies as string, options.actionsOf(service) ?? []);
      if (faults.length > 0)
        throw kernelProblem('policy_invalid', { extra: { errors: faults }, detail: 'Nothing was stored; errors says what Cedar found.' });
      const set = await port.upsertSet({
        env_id: targetEnvId,
        service,
        name: name as string,
        policies: policies as string,
        ...(id ? { policy_set_id: id } : {}),
        ...(mode ? { mode } : {}),
        ...(request.ifMatch ? { if_match: request.ifMatch } : {}),
        updated_by: by(caller),
      });
      if (service === own)
        await options.tell?.(targetEnvId, { service, policy_set: set, version: set.version, mode: set.mode, seeded: false });
      return set;
    },
    relations: async (request, body) => {
      const { subject, relation, object } = body as Record<string, string | undefined>;
      need({ subject, relation, object });
      return port.upsertRelation({
        env_id: request.targetEnvId,
        service: serviceOf(request),
        subject: subject as string,
        relation: relation as string,
        object: object as string,
      });
    },
    attributes: async (request, body) => {
      const { principal, key, value } = body as { principal?: string; key?: string; value?: string | number | boolean };
      need({ principal, key, value });
      return port.upsertAttribute({
        env_id: request.targetEnvId,
        service: serviceOf(request),
        principal: principal as string,
        key: key as string,
        value: value as string,
      });
    },
  };

  const routes: Record<string, MountedRoute> = {};
  const mount = (name: string, route: MountedRoute['route'], handler: (request: AdminRequest) => Promise<unknown>) => {
    routes[name] = { route, handler: handler as unknown as RouteHandler };
  };
  const query = {
    id: Type.Optional(Type.String()),
    service: Type.Optional(Type.String()),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
    cursor: Type.Optional(Type.String()),
  };

  for (const [kind, body, member, idMember] of [
    ['policy-sets', SetBody, 'sets', 'policy_set_id'],
    ['relations', RelationBody, 'relations', 'relation_id'],
    ['attributes', AttributeBody, 'attributes', 'attribute_id'],
  ] as const) {
    const path = `/v1/admin/${kind}`;
    const idOf = (row: object) => String((row as Record<string, unknown>)[idMember]);
    const hidden = !keepsAll;
    const apply = async (request: AdminRequest) => {
      const sent = request.body ?? {};
      const id = request.query.id ?? (sent[idMember] as string | undefined);
      if (sent['op'] !== 'delete') {
        const answer = await write[kind](request, id ? { ...sent, [idMember]: id } : sent);
        await reload(serviceOf(request), request.targetEnvId);
        return answer;
      }
      if (!id)
        throw kernelProblem('validation_failed', {
          extra: { errors: [{ pointer: `/${idMember}`, code: 'required', message: 'is required to delete' }] },
        });
      return remove(request, id);
    };
    const remove = async (request: AdminRequest, id: string) => {
      const service = serviceOf(request);
      const gone =
        kind === 'policy-sets' && options.tell
          ? (await port.snapshot(service, request.targetEnvId)).sets.find(({ policy_set_id }) => policy_set_id === id)
          : undefined;
      await port.remove({ kind, env_id: request.targetEnvId, service, id, updated_by: by(request.caller) });
      if (gone && service === own)
        await options.tell?.(request.targetEnvId, {
          service,
          policy_set: null,
          deleted_id: id,
          version: gone.version + 1,
          mode: gone.mode,
          seeded: false,
        });
      await reload(service, request.targetEnvId);
      return reply(undefined, { status: 204 });
    };
    mount(
      `${member}List`,
      get(path, { summary: `List ${kind}`, gate: { any: [read, admin] }, query, env: 'target', hidden }),
      async request => {
        const { query: asked, targetEnvId } = request;
        const rows = (await port.snapshot(serviceOf(request), targetEnvId))[member as keyof PolicySnapshot] as readonly object[];
        if (asked.id) return rows.find(row => idOf(row) === asked.id) ?? missing(asked.id);
        // Ids ascend with time; what is deleted between two pages does not move the others.
        const sorted = [...rows]
          .sort((left, right) => (idOf(left) < idOf(right) ? -1 : 1))
          .filter(row => asked.cursor === undefined || idOf(row) > asked.cursor);
        const items = sorted.slice(0, asked.limit ?? 50);
        return { items, next_cursor: sorted.length > items.length ? idOf(items.at(-1) as object) : null };
      },
    );
    mount(`${member}Write`, post(path, { summary: `Write ${kind}`, gate: admin, query, body, env: 'target', limit: LIMIT, hidden }), apply);
    mount(`${member}Put`, put(path, { summary: `Replace ${kind}`, gate: admin, query, body, env: 'target', limit: LIMIT, hidden }), apply);
    mount(`${member}Delete`, del(path, { summary: `Delete ${kind}`, gate: admin, query, env: 'target', hidden }), request =>
      request.query.id ? remove(request, request.query.id) : missing(''),
    );
  }

  mount(
    'decisionsList',
    get('/v1/admin/decisions', {
      summary: 'Latest decisions of this process',
      gate: { any: [read, admin] },
      query,
      env: 'target',
      hidden: true,
    }),
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
    post('/v1/admin/decisions', {
      summary: 'Say what would be decided, and why',
      gate: { any: [read, admin] },
      query,
      body: DryRun,
      env: 'target',
      limit: LIMIT,
      hidden: true,
    }),
    async request => {
      const { body, targetEnvId, correlationId } = request;
      const { principal, action, resource } = body as { principal: string; action: string; resource?: string };
      const [kind, id] = splitOnce(principal);
      if ((kind !== 'user' && kind !== 'workload') || !id)
        throw kernelProblem('validation_failed', {
          extra: { errors: [{ pointer: '/principal', code: 'pattern', message: 'is user:{id} or workload:{name}' }] },
        });
      const scopes = [...(await options.scopesOf({ kind, id }, targetEnvId))];
      const question = { principal: { kind, id, scopes }, action, ...(resource ? { resource } : {}) } as const;
      const [decision] = await inquire(
        { service: serviceOf(request), envId: targetEnvId, questions: [question] },
        { load: port.snapshot, log: options.log, correlationId },
      );
      return decision;
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
