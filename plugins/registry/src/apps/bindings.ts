import { brokenConstraint, type Caller, reply, type RequestOf } from '@platform/sdk';
import type { Binding } from '../../contract/schema/app.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx, RegistryTx } from '../context.ts';
import type { Access } from '../tenants/access.ts';
import { requireSlug } from '../tenants/slug.ts';
import type { Env } from '../../contract/schema/tenant.ts';
import { holdMutable } from '../tenants/status.ts';
import type { AppInstances } from './app-instances.ts';

type By = { readonly caller: Caller; readonly correlationId: string };

/**
 * Which apps an environment uses, each under a slug of its own there (G-SYS-08). A binding never changes: another slug is another binding.
 */
export class Bindings {
  readonly #ctx: Ctx;
  readonly #access: Access;
  readonly #audit: AuditTrail;
  readonly #apps: AppInstances;

  constructor(ctx: Ctx, parts: { access: Access; audit: AuditTrail; apps: AppInstances }) {
    this.#ctx = ctx;
    this.#access = parts.access;
    this.#audit = parts.audit;
    this.#apps = parts.apps;
  }

  async list({ params, query, caller }: RequestOf<Contract, 'listBindings'>) {
    await this.#access.env(caller, params.env_id);
    const spec = { list: `bindings ${params.env_id}`, order: { created_at: 'time', binding_id: 'id' } } as const;
    return this.#ctx.page(
      query,
      spec,
      ({ where, order, limit }) => this.#ctx.db.sql<Binding[]>`
      select * from bindings where env_id = ${params.env_id} and ${where} order by ${order} limit ${limit}`,
    );
  }

  async get({ params, caller }: RequestOf<Contract, 'getBinding'>): Promise<Binding> {
    await this.#access.env(caller, params.env_id);
    return this.#row(params);
  }

  async create({ params, body, caller, correlationId }: RequestOf<Contract, 'createBinding'>) {
    const env = await this.#access.env(caller, params.env_id, 'admin');
    requireSlug(this.#ctx, body.slug);
    if (body.app_instance_id) {
      const { app_id: appId } = await this.#apps.row({ env_id: params.env_id, app_instance_id: body.app_instance_id });
      if (appId !== body.app_id)
        throw this.#ctx.problem('app_instance_not_found', { detail: `The app instance is one of ${appId}, not of ${body.app_id}.` });
    }
    const binding = await this.#write(env, body.slug, tx =>
      this.#insert(
        tx,
        { env_id: params.env_id, app_id: body.app_id, app_instance_id: body.app_instance_id ?? null, slug: body.slug },
        { caller, correlationId },
      ),
    );
    return reply(binding, { status: 201, headers: { location: `/v1/env/${params.env_id}/bindings/${binding.binding_id}` } });
  }

  async update({ params, body, caller, correlationId }: RequestOf<Contract, 'updateBinding'>): Promise<Binding> {
    const env = await this.#access.env(caller, params.env_id, 'admin');
    const before = await this.#row(params);
    if (body.slug === before.slug) return before;
    requireSlug(this.#ctx, body.slug);
    return this.#write(env, body.slug, async tx => {
      await this.#delete(tx, before, { caller, correlationId });
      return this.#insert(
        tx,
        { env_id: before.env_id, app_id: before.app_id, app_instance_id: before.app_instance_id, slug: body.slug },
        { caller, correlationId },
      );
    });
  }

  async delete({ params, caller, correlationId }: RequestOf<Contract, 'deleteBinding'>): Promise<void> {
    const env = await this.#access.env(caller, params.env_id, 'admin');
    const before = await this.#row(params);
    await this.#ctx.db.tx(async tx => {
      await holdMutable(this.#ctx, tx.sql, env);
      await this.#delete(tx, before, { caller, correlationId });
    });
  }

  async #row({ env_id: envId, binding_id: id }: { env_id: string; binding_id: string }): Promise<Binding> {
    const [row] = await this.#ctx.db.sql<Binding[]>`select * from bindings where binding_id = ${id} and env_id = ${envId}`;
    return row ?? this.#absent(id);
  }

  async #insert(tx: RegistryTx, row: Omit<Binding, 'binding_id' | 'created_at'>, by: By): Promise<Binding> {
    const [binding] = await tx.sql<
      [Binding]
    >`insert into bindings ${tx.sql.row({ binding_id: this.#ctx.platform.newId(), ...row })} returning *`;
    await tx.emit('platform:sys:binding:created', row.env_id, { env_id: row.env_id, binding_id: binding.binding_id, app_id: row.app_id });
    await this.#audit.write(tx, {
      action: 'binding.created',
      envId: row.env_id,
      resource: { type: 'binding', id: binding.binding_id },
      details: { app_id: row.app_id, slug: row.slug },
      ...by,
    });
    return binding;
  }

  async #delete(tx: RegistryTx, { env_id, binding_id, app_id }: Binding, by: By): Promise<void> {
    const gone = await tx.sql<object[]>`delete from bindings where binding_id = ${binding_id} returning 1`;
    if (gone.length === 0) this.#absent(binding_id);
    await tx.emit('platform:sys:binding:deleted', env_id, { env_id, binding_id, app_id });
    await this.#audit.write(tx, { action: 'binding.deleted', envId: env_id, resource: { type: 'binding', id: binding_id }, ...by });
  }

  async #write(env: Env, slug: string, work: (tx: RegistryTx) => Promise<Binding>): Promise<Binding> {
    try {
      return await this.#ctx.db.tx(async tx => {
        await holdMutable(this.#ctx, tx.sql, env);
        return work(tx);
      });
    } catch (cause) {
      if (brokenConstraint(cause) === 'bindings_slug')
        throw this.#ctx.problem('slug_taken', {
          detail: `"${slug}" is bound in this environment.`,
          extra: { errors: [{ pointer: '/slug', code: 'taken', message: 'is in use' }] },
        });
      throw cause;
    }
  }

  #absent(id: string): never {
    throw this.#ctx.problem('binding_not_found', { detail: `No binding ${id} in this environment.` });
  }
}
