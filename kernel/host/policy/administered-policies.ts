import { type Caller, isProblem, type Logger, ProblemError, type Request, reply } from '@platform/sdk';
import { kernelProblem } from '../../base/kernel-problem.ts';
import { pageOf } from '../../http/paging.ts';
import { noteCompared } from '../../http/precondition.ts';
import { policyFaults } from '../../policy/cedar.ts';
import type { PolicyEngine } from '../../policy/policy-engine.ts';
import { inquire, splitOnce } from '../../policy/policy-inquiry.ts';
import type { PolicyKind, PolicyPort } from '../../policy/policy-port.ts';
import { policyRowsChanged } from './policy-events.ts';
import { POLICY_KINDS } from './policy-kinds.ts';
import { policyWriter } from './policy-writer.ts';

export type AdminRequest = Request<
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
  /** Tells the world of a change of this service's own policies; absent where the registry tells of it. */
  readonly tell?: (envId: string, payload: object) => Promise<void>;
  /** Live scopes of somebody else, for the dry run. */
  readonly scopesOf: (principal: { kind: 'user' | 'workload'; id: string }, envId: string) => Promise<ReadonlySet<string>>;
}

/** The policies of (environment, service) as administrators read and change them (G-K-10). */
export class AdministeredPolicies {
  readonly #options: PolicyAdministrationOptions;
  readonly #port: PolicyPort;

  constructor(options: PolicyAdministrationOptions) {
    this.#options = options;
    this.#port = speakingFor(options.service, options.port);
  }

  /** One row of a kind, or a page of all; ids ascend with time, so that what is deleted between two pages does not move the others. */
  async list(kind: PolicyKind, request: AdminRequest): Promise<unknown> {
    const { query, targetEnvId } = request;
    const { member, idMember } = POLICY_KINDS[kind];
    const idOf = (row: object) => String((row as Record<string, unknown>)[idMember]);
    const rows: readonly object[] = (await this.#port.snapshot(this.#serviceOf(request), targetEnvId))[member];
    if (query.id) return rows.find(row => idOf(row) === query.id) ?? missing(query.id);
    const spec = { list: `${kind} ${this.#serviceOf(request)} ${targetEnvId}`, order: { [idMember]: 'text' } } as const;
    return pageOf(query, spec, async ({ after: [after] = [], limit }) =>
      [...rows]
        .sort((left, right) => (idOf(left) < idOf(right) ? -1 : 1))
        .filter(row => after === undefined || idOf(row) > after)
        .slice(0, limit),
    );
  }

  /** The latest decisions of this process. */
  decisions({ query, targetEnvId }: AdminRequest): Promise<unknown> {
    const { engine, service } = this.#options;
    return pageOf(
      query,
      { list: `decisions ${service} ${targetEnvId}`, order: { decision_id: 'id' } },
      async ({ after: [after] = [], limit }) =>
        engine
          .decisions()
          .filter(({ env_id, decision_id }) => env_id === targetEnvId && (after === undefined || decision_id < after))
          .slice(0, limit),
    );
  }

  /** Writes a row, or deletes it where the body says `op: delete`. */
  async apply(kind: PolicyKind, request: AdminRequest): Promise<unknown> {
    const { idMember } = POLICY_KINDS[kind];
    const sent = request.body ?? {};
    const id = request.query.id ?? (sent[idMember] as string | undefined);
    if (sent['op'] === 'delete') {
      if (id) return this.remove(kind, request, id);
      throw kernelProblem('validation_failed', {
        extra: { errors: [{ pointer: `/${idMember}`, code: 'required', message: 'is required to delete' }] },
      });
    }
    const answer = await this.#write(kind, request, id ? { ...sent, [idMember]: id } : sent);
    await this.#changed(kind, request);
    return answer;
  }

  async remove(kind: PolicyKind, request: AdminRequest, id: string): Promise<unknown> {
    const { service: own, tell } = this.#options;
    const { targetEnvId, ifMatch } = request;
    const service = this.#serviceOf(request);
    const gone =
      kind === 'policy-sets' && tell
        ? (await this.#port.snapshot(service, targetEnvId)).sets.find(({ policy_set_id }) => policy_set_id === id)
        : undefined;
    const condition = ifMatch ? { if_match: ifMatch } : {};
    await this.#port.remove({ kind, env_id: targetEnvId, service, id, ...condition, ...policyWriter(request.caller) });
    noteCompared(ifMatch);
    if (gone && service === own)
      await tell?.(targetEnvId, { service, policy_set: null, deleted_id: id, version: gone.version + 1, mode: gone.mode, seeded: false });
    await this.#changed(kind, request);
    return reply(undefined, { status: 204 });
  }

  /** What would be decided for a principal, and why. */
  async dryRun(request: AdminRequest): Promise<unknown> {
    const { scopesOf, log } = this.#options;
    const { body, targetEnvId, correlationId } = request;
    const { principal, action, resource } = body as { principal: string; action: string; resource?: string };
    const [kind, id] = splitOnce(principal);
    if ((kind !== 'user' && kind !== 'workload') || !id)
      throw kernelProblem('validation_failed', {
        extra: { errors: [{ pointer: '/principal', code: 'pattern', message: 'is user:{id} or workload:{name}' }] },
      });
    const scopes = [...(await scopesOf({ kind, id }, targetEnvId))];
    const question = { principal: { kind, id, scopes }, action, ...(resource ? { resource } : {}) } as const;
    const [decision] = await inquire(
      { service: this.#serviceOf(request), envId: targetEnvId, questions: [question] },
      { load: this.#port.snapshot, log, correlationId },
    );
    return decision;
  }

  #write(kind: PolicyKind, request: AdminRequest, body: Record<string, unknown>): Promise<unknown> {
    if (kind === 'policy-sets') return this.#writeSet(request, body);
    const row = { env_id: request.targetEnvId, service: this.#serviceOf(request), ...policyWriter(request.caller) };
    if (kind === 'relations') {
      const { subject, relation, object } = need<'subject' | 'relation' | 'object'>(body, ['subject', 'relation', 'object']);
      return this.#port.upsertRelation({ ...row, subject, relation, object });
    }
    const { principal, key, value } = need<'principal' | 'key' | 'value'>(body, ['principal', 'key', 'value']);
    return this.#port.upsertAttribute({ ...row, principal, key, value });
  }

  async #writeSet(request: AdminRequest, body: Record<string, unknown>): Promise<unknown> {
    const { service: own, actionsOf, tell } = this.#options;
    const { caller, targetEnvId, ifMatch } = request;
    const service = this.#serviceOf(request);
    const { name, policies } = need<'name' | 'policies'>(body, ['name', 'policies']);
    const { policy_set_id: id, mode } = body as { policy_set_id?: string; mode?: 'shadow' | 'enforced' };
    const faults = policyFaults(policies, actionsOf(service) ?? []);
    if (faults.length > 0)
      throw kernelProblem('policy_invalid', { extra: { errors: faults }, detail: 'Nothing was stored; errors says what Cedar found.' });
    const set = await this.#port.upsertSet({
      env_id: targetEnvId,
      service,
      name,
      policies,
      ...(id ? { policy_set_id: id } : {}),
      ...(mode ? { mode } : {}),
      ...(ifMatch ? { if_match: ifMatch } : {}),
      ...policyWriter(caller),
    });
    noteCompared(ifMatch);
    if (service === own) await tell?.(targetEnvId, { service, policy_set: set, version: set.version, mode: set.mode, seeded: false });
    return set;
  }

  /** Whose policies the request is about. */
  #serviceOf({ query }: AdminRequest): string {
    const { service: own, keepsAll, actionsOf } = this.#options;
    const asked = query.service ?? own;
    if (asked === own || (keepsAll && actionsOf(asked))) return asked;
    const message = keepsAll
      ? 'is not a service of this platform'
      : `is not ${own}: every service administers its own, the registry those of all`;
    throw kernelProblem('validation_failed', { extra: { errors: [{ pointer: '/service', code: 'unknown_service', message }] } });
  }

  /** This process goes by the change at once; of what is no set nobody was told yet. */
  async #changed(kind: PolicyKind, request: AdminRequest): Promise<void> {
    const { service: own, engine, tell } = this.#options;
    if (this.#serviceOf(request) !== own) return;
    const { targetEnvId } = request;
    if (kind !== 'policy-sets') await tell?.(targetEnvId, policyRowsChanged(own, kind));
    await engine.reload(targetEnvId).catch(() => undefined);
  }
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
    putAttributes: speaking(port.putAttributes),
    remove: speaking(port.remove),
  };
}

function need<M extends string>(body: Record<string, unknown>, members: readonly M[]): Record<M, string> {
  const errors = members
    .filter(name => body[name] === undefined)
    .map(name => ({ pointer: `/${name}`, code: 'required', message: 'is required' }));
  if (errors.length > 0) throw kernelProblem('validation_failed', { extra: { errors } });
  return body as Record<M, string>;
}

export function missing(id: string): never {
  throw kernelProblem('not_found', { detail: `No row ${id} in this environment.` });
}
