import { brokenConstraint, type Caller, type RequestOf } from '@platform/sdk';
import { registry } from '../../contract/index.ts';
import type { Attribute, PolicySet, Relation } from '../../contract/schema/policy.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx, RegistryTx } from '../context.ts';
import { PolicyTrail, type PolicyWrite } from './policy-trail.ts';

/** Policy sets, relations and attributes of every (environment, service), kept for the services that evaluate them (C27). */
export class PolicyStore {
  readonly #ctx: Ctx;
  readonly #trail: PolicyTrail;

  constructor(ctx: Ctx, { audit }: { audit: AuditTrail }) {
    this.#ctx = ctx;
    this.#trail = new PolicyTrail(audit);
  }

  /** The platform's own set, generated from the contracts and mirrored by scope; its row says that it is in force (G-K-10). */
  async seed(tx: RegistryTx, envId: string): Promise<void> {
    const policies = this.#ctx.catalog
      .actions()
      .map(({ scope }) => `permit(principal in Scope::${JSON.stringify(scope)}, action == Action::${JSON.stringify(scope)}, resource);`)
      .join('\n');
    const row = {
      policy_set_id: this.#ctx.platform.newId(),
      env_id: envId,
      service: '*',
      name: 'scope-mirror',
      origin: 'platform',
      mode: 'enforced',
      policies,
      updated_by: 'workload:sys',
    } as const;
    // The text does not come back: it is long, and known.
    const [made] = await tx.sql<Pick<PolicySet, 'version' | 'created_at' | 'updated_at'>[]>`
      insert into policy_sets ${tx.sql.row(row)} on conflict (env_id, service, name) do nothing returning version, created_at, updated_at`;
    const set = made && { ...row, ...made };
    if (set)
      await tx.emit(
        'platform:sys:policy:updated',
        envId,
        { service: '*', policy_set: set, version: set.version, mode: set.mode, seeded: true },
        envId,
      );
  }

  async snapshot({ query, caller }: RequestOf<Contract, 'policySnapshot'>) {
    this.#requireOwn(caller.service, query.service);
    const { sql } = this.#ctx.db;
    const { env_id: envId, service } = query;
    const [sets, relations, attributes] = await Promise.all([
      sql<
        PolicySet[]
      >`select * from policy_sets where env_id = ${envId} and service in (${service}, '*') order by created_at, policy_set_id`,
      sql<Relation[]>`select * from policy_relations where env_id = ${envId} and service = ${service}`,
      sql<Attribute[]>`select * from policy_attributes where env_id = ${envId} and service = ${service}`,
    ]);
    return { sets: [...sets], relations: [...relations], attributes: [...attributes] };
  }

  /** A new tenant set starts in shadow at version 1; every write after that adds one (G-K-10). */
  async upsertSet(request: RequestOf<Contract, 'policyUpsertSet'>): Promise<PolicySet> {
    const { body, caller } = request;
    this.#requireOwn(caller.service, body.service);
    const { problem, db, platform } = this.#ctx;
    return db.tx(async tx => {
      const [known] = await tx.sql<PolicySet[]>`
        select * from policy_sets where env_id = ${body.env_id}
          and ((${body.policy_set_id ?? null}::uuid is not null and policy_set_id = ${body.policy_set_id ?? null}::uuid
            and service in (${body.service}, '*'))
            or (${body.policy_set_id ?? null}::uuid is null and service in (${body.service}, '*') and name = ${body.name}))
        for update`;
      if (known?.origin === 'platform')
        throw problem('platform_origin_row', { detail: 'Sets of the platform are managed by enrolment. Write a set of your own name.' });
      if (!known && body.policy_set_id) throw problem('policy_row_not_found');
      this.#ctx.requireVersion(body.if_match, known?.version ?? 0);
      let set: PolicySet;
      try {
        [set] = known
          ? await tx.sql<
              [PolicySet]
            >`update policy_sets set name = ${body.name}, policies = ${body.policies}, mode = ${body.mode ?? known.mode},
              version = version + 1, updated_at = now(), updated_by = ${body.updated_by} where policy_set_id = ${known.policy_set_id}
              returning *`
          : await tx.sql<[PolicySet]>`insert into policy_sets ${tx.sql.row({
              policy_set_id: platform.newId(),
              env_id: body.env_id,
              service: body.service,
              name: body.name,
              origin: 'tenant',
              mode: 'shadow',
              policies: body.policies,
              updated_by: body.updated_by,
            })} returning *`;
      } catch (cause) {
        if (brokenConstraint(cause) !== undefined)
          throw problem('slug_taken', { detail: `A set named "${body.name}" is there already.`, cause });
        throw cause;
      }
      await this.#trail.set(tx, request, known, set);
      if (tells(caller))
        await tx.emit('platform:sys:policy:updated', body.env_id, {
          service: body.service,
          policy_set: set,
          version: set.version,
          mode: set.mode,
          seeded: false,
        });
      return set;
    });
  }

  async upsertRelation(request: RequestOf<Contract, 'policyUpsertRelation'>): Promise<Relation> {
    const { body, caller } = request;
    this.#requireOwn(caller.service, body.service);
    const { env_id, service, subject, relation, object } = body;
    const row = { relation_id: this.#ctx.platform.newId(), env_id, service, subject, relation, object };
    return this.#ctx.db.tx(async tx => {
      // PostgreSQL sets xmax on a row that was there before; on one that this statement inserted it is 0.
      const [{ added, ...stored }] = await tx.sql<[Relation & { added: boolean }]>`
        insert into policy_relations ${tx.sql.row(row)}
        on conflict (env_id, service, subject, relation, object) do update set object = excluded.object returning *, xmax = 0 as added`;
      if (added) await this.#trail.relation(tx, request, 'added', stored);
      await this.#tell(tx, caller, 'relations', body);
      return stored;
    });
  }

  async upsertAttribute(request: RequestOf<Contract, 'policyUpsertAttribute'>): Promise<Attribute> {
    const { body, caller } = request;
    this.#requireOwn(caller.service, body.service);
    return this.#ctx.db.tx(async tx => {
      const [row] = await this.#write(tx, request, [[body.key, body.value]]);
      await this.#tell(tx, caller, 'attributes', body);
      return row as Attribute;
    });
  }

  /** All of them or none; `null` takes one away. */
  async putAttributes(request: RequestOf<Contract, 'policyPutAttributes'>) {
    const { body, caller } = request;
    this.#requireOwn(caller.service, body.service);
    const { env_id: envId, service, principal, values } = body;
    return this.#ctx.db.tx(async tx => {
      const mine = () => tx.sql<Attribute[]>`
        select * from policy_attributes
        where env_id = ${envId} and service = ${service} and principal = ${principal} order by key for update`;
      const before = await mine();
      const entries = Object.entries(values);
      const [gone, kept] = [before.filter(({ key }) => values[key] === null), entries.filter(isKept)];
      if (gone.length > 0)
        await tx.sql`delete from policy_attributes where attribute_id = any(${gone.map(row => row.attribute_id)}::uuid[])`;
      for (const row of gone) await this.#trail.attribute(tx, request, row, { was: row.value });
      await this.#write(tx, request, kept);
      await this.#tell(tx, caller, 'attributes', body);
      return { before: membersOf(before), after: membersOf(await mine()) };
    });
  }

  async #write(
    tx: RegistryTx,
    request: PolicyWrite & { readonly body: Pick<Attribute, 'principal'> },
    values: readonly (readonly [string, Attribute['value']])[],
  ): Promise<Attribute[]> {
    const { env_id, service, principal } = request.body;
    const before = await tx.sql<Pick<Attribute, 'key' | 'value'>[]>`
      select key, value from policy_attributes
      where env_id = ${env_id} and service = ${service} and principal = ${principal} and key = any(${values.map(([key]) => key)})
      order by key for update`;
    const known = new Map(before.map(({ key, value }) => [key, value]));
    const written: Attribute[] = [];
    // In one order, so that two writes at once wait for each other and never both.
    for (const [key, value] of [...values].sort(([left], [right]) => (left < right ? -1 : 1))) {
      const row = { attribute_id: this.#ctx.platform.newId(), env_id, service, principal, key, value: tx.sql.json(value) };
      const [stored] = await tx.sql<[Attribute]>`
        insert into policy_attributes ${tx.sql.row(row)}
        on conflict (env_id, service, principal, key) do update set value = excluded.value returning *`;
      await this.#trail.attribute(tx, request, stored, { was: known.get(key), is: stored.value });
      written.push(stored);
    }
    return written;
  }

  async remove(request: RequestOf<Contract, 'policyRemove'>): Promise<void> {
    const { body, caller } = request;
    this.#requireOwn(caller.service, body.service);
    await this.#ctx.db.tx(async tx => {
      if (body.kind === 'policy-sets') return this.#removeSet(tx, request);
      await (body.kind === 'relations' ? this.#removeRelation(tx, request) : this.#removeAttribute(tx, request));
      await this.#tell(tx, caller, body.kind, body);
    });
  }

  async #removeRelation(tx: RegistryTx, request: RequestOf<Contract, 'policyRemove'>): Promise<void> {
    const { env_id: envId, service, id } = request.body;
    const [gone] = await tx.sql<Relation[]>`
      delete from policy_relations where env_id = ${envId} and service = ${service} and relation_id::text = ${id} returning *`;
    if (!gone) throw this.#ctx.problem('policy_row_not_found');
    await this.#trail.relation(tx, request, 'removed', gone);
  }

  async #removeAttribute(tx: RegistryTx, request: RequestOf<Contract, 'policyRemove'>): Promise<void> {
    const { env_id: envId, service, id } = request.body;
    const [gone] = await tx.sql<Attribute[]>`
      delete from policy_attributes where env_id = ${envId} and service = ${service} and attribute_id::text = ${id} returning *`;
    if (!gone) throw this.#ctx.problem('policy_row_not_found');
    await this.#trail.attribute(tx, request, gone, { was: gone.value });
  }

  async #removeSet(tx: RegistryTx, request: RequestOf<Contract, 'policyRemove'>): Promise<void> {
    const { problem } = this.#ctx;
    const { env_id: envId, service, id, if_match: versions } = request.body;
    const [set] = await tx.sql<
      PolicySet[]
    >`select * from policy_sets where env_id = ${envId} and service in (${service}, '*') and policy_set_id::text = ${id} for update`;
    if (!set) throw problem('policy_row_not_found');
    if (set.origin === 'platform') throw problem('platform_origin_row', { detail: 'Sets of the platform are managed by enrolment.' });
    this.#ctx.requireVersion(versions, set.version);
    await tx.sql`delete from policy_sets where policy_set_id = ${set.policy_set_id}`;
    await this.#trail.set(tx, request, set, undefined);
    if (tells(request.caller))
      await tx.emit('platform:sys:policy:updated', envId, {
        service,
        policy_set: null,
        deleted_id: set.policy_set_id,
        version: set.version + 1,
        mode: set.mode,
        seeded: false,
      });
  }

  /** What sets are judged by changed: every process that evaluates them reads anew. */
  async #tell(
    tx: RegistryTx,
    caller: Caller,
    kind: 'relations' | 'attributes',
    { env_id: envId, service }: { env_id: string; service: string },
  ): Promise<void> {
    const payload = { service, policy_set: null, version: 0, mode: 'enforced', seeded: false, kind } as const;
    if (tells(caller)) await tx.emit('platform:sys:policy:updated', envId, payload);
  }

  #requireOwn(callerService: string, service: string): void {
    // The registry's own workload speaks for the holder of `sys:policy:admin` (G-K-10).
    if (callerService !== service && callerService !== registry.base.id)
      throw this.#ctx.problem('foreign_policy', { detail: `${callerService} does not keep policies of ${service}.` });
  }
}

/** A service of the platform tells of its own sets under its own name; of what a vertical keeps here the registry tells (F-26). */
const tells = ({ service, vertical }: Caller): boolean => service === 'sys' || vertical !== 'platform';

const isKept = (entry: [string, Attribute['value'] | null]): entry is [string, Attribute['value']] => entry[1] !== null;
const membersOf = (rows: readonly Pick<Attribute, 'key' | 'value'>[]) => Object.fromEntries(rows.map(({ key, value }) => [key, value]));
