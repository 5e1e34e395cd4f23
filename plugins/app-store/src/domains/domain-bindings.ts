import { brokenConstraint, type Caller, reply, type Reply } from '@platform/sdk';
import type { DomainBinding } from '../../contract/schema/domain.ts';
import type { Ctx, Of, StoreTx } from '../context.ts';
import type { InstanceRow } from '../instances/instance-row.ts';
import type { Instances } from '../instances/instances.ts';
import { type DomainChallenges, type Method, newChallenge, txtName } from './domain-challenge.ts';
import type { DomainMapping } from './domain-mapping.ts';
import type { BindingRow } from './binding-row.ts';

interface Parts {
  readonly challenges: DomainChallenges;
  readonly instances: Instances;
  readonly mapping: DomainMapping;
}
type Told = 'bound' | 'verified' | 'failed' | 'removed';

export const bindingOf = (row: BindingRow): DomainBinding => ({
  binding_id: row.binding_id,
  instance_id: row.instance_id,
  fqdn: row.fqdn,
  method: row.method,
  txt_name: txtName(row.fqdn),
  txt_record: row.txt_record,
  cname_token: row.cname_token,
  cname_target: row.cname_target,
  status: row.status,
  attempts: row.attempts,
  verified_at: row.verified_at,
  last_error: row.last_error,
});

/** Domains of applications (G-APP-05). Life: pending → verified → active, pending → failed, and removed from each of them. */
export class DomainBindings {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    [this.#ctx, this.#parts] = [ctx, parts];
  }

  /** Asks for a domain, or has DNS looked at, by what the body holds. */
  async bind(
    { params, env, body, caller }: Pick<Of<'bindDomain'>, 'params' | 'env' | 'body' | 'caller'>,
    requireCallback: (row: InstanceRow, fqdn: string) => void,
  ): Promise<Reply<DomainBinding>> {
    const instance = await this.#active(env, params.instance_id);
    const { fqdn, txt_record, cname_token, cname_target } = body;
    const alias = cname_token !== undefined && cname_target !== undefined;
    if (!alias && txt_record === undefined) {
      requireCallback(instance, fqdn);
      const known = await this.current(instance.instance_id);
      if (known && known.fqdn === fqdn && known.status !== 'failed') return reply(bindingOf(known), { status: 200 });
      return reply(await this.#ctx.db.tx(tx => this.ask(tx, instance, fqdn, caller)), { status: 201 });
    }
    const known = await this.current(instance.instance_id);
    if (known?.fqdn !== fqdn) throw this.#absent();
    // Both given: the alias decides, and the text is not looked at (APP-054).
    const shown = alias
      ? cname_token === known.cname_token && cname_target.toLowerCase().replace(/\.$/, '') === known.cname_target
      : txt_record === known.txt_record;
    if (!shown) throw this.#unproven(known, alias ? 'cname' : 'txt', 'These are not the values that were given for this domain.');
    return reply(await this.verify(instance, known, alias ? 'cname' : 'txt', caller), {});
  }

  /** For pages: by whichever way the records are there. */
  async check({ params, env, caller }: Of<'checkDomain'>): Promise<DomainBinding> {
    const instance = await this.#active(env, params.instance_id);
    const known = await this.current(instance.instance_id);
    if (!known) throw this.#absent();
    const method = known.method ?? ((await this.#parts.challenges.look(known, 'cname')).proven ? 'cname' : 'txt');
    return this.verify(instance, known, method, caller);
  }

  async get(env: string, instanceId: string): Promise<DomainBinding> {
    const { instance_id } = await this.#parts.instances.of(env, instanceId);
    const known = await this.current(instance_id);
    if (!known) throw this.#absent();
    return bindingOf(known);
  }

  async of(env: string, instanceId: string): Promise<{ items: DomainBinding[] }> {
    const { instance_id } = await this.#parts.instances.of(env, instanceId);
    const known = await this.current(instance_id);
    return { items: known ? [bindingOf(known)] : [] };
  }

  /** Part of a change: the domain that an instance asks for from now on. */
  async ask(tx: StoreTx, instance: InstanceRow, fqdn: string, caller: Caller | undefined): Promise<DomainBinding> {
    const { clock, platform } = this.#ctx;
    const { instance_id, env_id, org_id } = instance;
    // A name is held by who has proven it; among the applications of one organization by who asked first. A stranger's wish holds nothing
    // against its owner.
    await tx.sql`select pg_advisory_xact_lock(hashtextextended(${`app:fqdn:${fqdn}`}, 0))`;
    const [held] = await tx.sql<object[]>`
      select 1 from domain_bindings where fqdn = ${fqdn} and instance_id <> ${instance_id}
        and (status in ('verified', 'active') or (status = 'pending' and org_id = ${org_id})) limit 1`;
    if (held) throw this.#taken(fqdn);
    const [other] = await tx.sql<
      { fqdn: string; status: string }[]
    >`select fqdn, status from domain_bindings where instance_id = ${instance_id} and status <> 'removed' for update`;
    if (other && other.status !== 'failed')
      throw this.#ctx.problem('binding_exists', { detail: `It has ${other.fqdn}. Give that up first.` });
    await tx.sql`update domain_bindings set status = 'removed', updated_at = ${clock.now()} where instance_id = ${instance_id}
      and status = 'failed'`;
    const now = clock.now();
    const row = {
      binding_id: platform.newId(),
      env_id,
      org_id,
      instance_id,
      ...newChallenge(instance_id, fqdn, platform.domain),
      created_at: now,
      updated_at: now,
    };
    const [made] = await tx.sql<[BindingRow]>`insert into domain_bindings ${tx.sql.row(row)} returning *`;
    await this.tell(tx, made, 'bound', caller);
    return bindingOf(made);
  }

  /** Looks at DNS, and maps what is proven. Throws `domain_not_verified`. */
  async verify(instance: InstanceRow, known: BindingRow, method: Method, caller?: Caller): Promise<DomainBinding> {
    if (known.status === 'active') return bindingOf(known);
    if (known.status === 'pending' || known.status === 'failed') {
      const { proven, reason } = await this.#parts.challenges.look(known, method);
      if (!proven) {
        await this.#ctx.db.sql`
          update domain_bindings set attempts = attempts + 1, last_error = ${reason}, updated_at = ${this.#ctx.clock.now()}
            where binding_id = ${known.binding_id} and status in ('pending', 'failed')`;
        throw this.#unproven(known, method, reason ?? 'The records are not there.');
      }
      await this.#proven(known, method, caller);
    }
    const verified = { ...known, status: 'verified' as const, method: known.status === 'verified' ? known.method : method };
    await this.#parts.mapping.activate(instance, verified);
    return bindingOf((await this.current(instance.instance_id)) ?? verified);
  }

  async unbind({ params, env, caller }: Of<'unbindDomain'>): Promise<void> {
    const instance = await this.#parts.instances.of(env, params.instance_id);
    if (!(await this.giveUp(instance, caller))) throw this.#absent();
  }

  /** Takes the domain from the registry and from the instance. @returns whether there was one */
  async giveUp(instance: InstanceRow, caller?: Caller): Promise<boolean> {
    const known = await this.current(instance.instance_id);
    if (!known) return false;
    await this.#parts.mapping.remove(instance, known.fqdn);
    await this.#ctx.db.tx(async tx => {
      const gone = await tx.sql<
        object[]
      >`update domain_bindings set status = 'removed', updated_at = ${this.#ctx.clock.now()} where binding_id = ${known.binding_id}
        and status <> 'removed' returning 1`;
      if (gone.length === 0) return;
      await tx.sql`update instances set domain = default_domain, updated_at = ${this.#ctx.clock.now()}
        where instance_id = ${instance.instance_id}`;
      await this.tell(tx, known, 'removed', caller);
    });
    return true;
  }

  /** The domain of an instance, unless it was given up. */
  async current(instanceId: string): Promise<BindingRow | undefined> {
    const [row] = await this.#ctx.db.sql<
      BindingRow[]
    >`select * from domain_bindings where instance_id = ${instanceId} and status <> 'removed'`;
    return row;
  }

  async tell(
    tx: StoreTx,
    { binding_id, instance_id, fqdn, env_id }: Pick<BindingRow, 'binding_id' | 'instance_id' | 'fqdn' | 'env_id'>,
    told: Told,
    caller?: Caller,
  ): Promise<void> {
    await tx.emit(`platform:app:domain:${told}`, env_id, { binding_id, instance_id, fqdn });
    await tx.audit({
      action: `domain.${told}`,
      envId: env_id,
      caller,
      resource: { type: 'domain_binding', id: binding_id },
      details: { fqdn },
    });
  }

  async #proven(known: BindingRow, method: Method, caller?: Caller): Promise<void> {
    const now = this.#ctx.clock.now();
    try {
      await this.#ctx.db.tx(async tx => {
        const rows = await tx.sql<object[]>`
          update domain_bindings set status = 'verified', method = ${method}, attempts = attempts + 1, verified_at = ${now},
            last_error = null, updated_at = ${now}
          where binding_id = ${known.binding_id} and status in ('pending', 'failed') returning 1`;
        if (rows.length > 0) await this.tell(tx, known, 'verified', caller);
      });
    } catch (cause) {
      throw brokenConstraint(cause) === 'domain_bindings_held' ? this.#taken(known.fqdn) : cause;
    }
  }

  async #active(env: string, instanceId: string): Promise<InstanceRow> {
    const instance = await this.#parts.instances.of(env, instanceId);
    if (instance.status !== 'active') throw this.#ctx.problem('instance_not_active', { detail: `It is ${instance.status}.` });
    return instance;
  }

  #unproven(known: BindingRow, method: Method, reason: string) {
    const expected =
      method === 'cname'
        ? [{ type: 'CNAME', name: `${known.cname_token}.${known.fqdn}`, value: known.cname_target }]
        : [{ type: 'TXT', name: txtName(known.fqdn), value: known.txt_record }];
    return this.#ctx.problem('domain_not_verified', {
      detail: `${reason} Publish the record in "expected" and try again.`,
      extra: { expected },
    });
  }

  #taken(fqdn: string) {
    return this.#ctx.problem('fqdn_taken', {
      detail: `"${fqdn}" belongs to another application. It must give it up first.`,
      extra: { errors: [{ pointer: '/fqdn', code: 'taken', message: 'is in use' }] },
    });
  }

  #absent() {
    return this.#ctx.problem('binding_not_found', { detail: 'Ask for the domain first, with its fqdn alone.' });
  }
}
