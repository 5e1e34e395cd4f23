import { type Caller, nameOf, type RequestOf } from '@platform/sdk';
import type { functions } from '../../contract/index.ts';
import type { Module } from '../../contract/schema.ts';
import type { FuncContext } from '../context.ts';
import type { Enablement } from '../enablement.ts';
import { ModuleFault } from '../metering/byte-reader.ts';
import { CEILING_PAGES, inspect } from './inspection.ts';
import { hashOf, type ModuleObjects } from './module-objects.ts';

type Of<R extends keyof (typeof functions)['routes']> = RequestOf<typeof functions, R>;
type Tx = Parameters<Parameters<FuncContext['db']['tx']>[0]>[0];
type Change = 'uploaded' | 'validated' | 'activated' | 'deprecated' | 'deleted';
const MAX_MODULE = 8_388_608;

/** Uploaded modules and which of them is in force (G-FUNC-01, G-FUNC-02). */
export class Modules {
  readonly #ctx: FuncContext;
  readonly #objects: ModuleObjects;
  readonly #enablement: Enablement;

  constructor(ctx: FuncContext, objects: ModuleObjects, enablement: Enablement) {
    [this.#ctx, this.#objects, this.#enablement] = [ctx, objects, enablement];
  }

  async upload({ env, body, caller }: Of<'uploadModule'>) {
    await this.#enablement.require(env);
    const bytes = this.#decode(body.wasm_base64);
    const hash = hashOf(bytes);
    if (body.wasm_hash !== undefined && body.wasm_hash !== hash)
      throw this.#ctx.problem('wasm_hash_mismatch', { detail: `The bytes have the hash ${hash}.` });
    try {
      inspect(bytes, body.hooks, CEILING_PAGES);
    } catch (error) {
      if (!(error instanceof ModuleFault)) throw error;
      throw this.#ctx.problem('invalid_module', { detail: error.message, extra: { fault: error.code } });
    }
    const { domain, product } = body;
    const existing = await this.#byContent(env, domain, product, hash);
    if (existing) return { made: false, module: existing };
    const module_id = this.#ctx.platform.newId();
    const storage_key = `func/${module_id}.wasm`;
    // The object first: a row never names bytes that are not there (FUN-007).
    await this.#objects.put(storage_key, bytes, env);
    const now = this.#ctx.clock.now();
    const row = {
      ...{
        module_id,
        env_id: env,
        domain,
        product,
        version_label: body.version_label ?? hash.slice(7, 19),
        storage_key,
        source_language: body.source_language,
      },
      ...{
        hooks: this.#ctx.db.sql.json(body.hooks),
        parameters: this.#ctx.db.sql.json(body.parameters ?? {}),
        wasm_hash: hash,
        size_bytes: bytes.length,
        owner: nameOf(caller),
        created_at: now,
        updated_at: now,
      },
    };
    try {
      const made = await this.#ctx.db.tx(async tx => {
        const rows = await tx.sql<
          object[]
        >`insert into modules ${tx.sql.row(row)} on conflict (env_id, domain, product, wasm_hash) do nothing returning 1`;
        if (rows.length === 0) return false;
        await this.#told(tx, 'uploaded', { env_id: env, module_id, domain, product, wasm_hash: hash }, caller);
        return true;
      });
      if (!made) await this.#discard(storage_key);
      return { made, module: (await this.#byContent(env, domain, product, hash)) as Module };
    } catch (error) {
      await this.#discard(storage_key);
      throw error;
    }
  }

  list({ env, query: { domain, product, status, ...query } }: Of<'listModules'>) {
    const { db, page } = this.#ctx;
    const [d, p, s] = [domain ?? null, product ?? null, status ?? null];
    return page(
      query,
      { list: `modules ${env} ${d} ${p} ${s}`, order: { created_at: 'time', module_id: 'id' } },
      ({ where, order, limit }) => db.sql<Module[]>`
        select * from (
          select m.module_id, m.env_id, m.domain, m.product, m.version_label, m.status, m.validated_at, m.storage_key, m.source_language,
            m.hooks, m.parameters, m.wasm_hash,
            m.size_bytes, m.owner, m.created_at, m.updated_at, p.module_id is not null as active
          from modules m left join products p on p.module_id = m.module_id
          where m.env_id = ${env} and (${d}::text is null or m.domain = ${d}) and (${p}::text is null or m.product = ${p})
            and (${s}::text is null or m.status = ${s})
        ) as listed where ${where} order by ${order} limit ${limit}`,
    );
  }

  /** Throws `module_not_found`. */
  async get(env: string, moduleId: string): Promise<Module> {
    const [module] = await this.#select(env, moduleId);
    if (!module) throw this.#ctx.problem('module_not_found', { detail: 'This environment has no module of that number.' });
    return module;
  }

  async activate({ env, params, caller }: Of<'activateModule'>): Promise<Module> {
    const module = await this.owned(env, params.module_id, caller);
    await this.#ctx.db.tx(async tx => {
      await tx.sql`select pg_advisory_xact_lock(hashtextextended(${`${env} ${module.domain} ${module.product}`}, 0))`;
      const [now] = await tx.sql<
        { validated_at: string | null }[]
      >`select validated_at from modules where module_id = ${module.module_id} for update`;
      if (!now) throw this.#ctx.problem('module_not_found');
      if (now.validated_at === null)
        throw this.#ctx.problem('module_not_validated', { detail: 'Validate it first; what it lacks is said there.' });
      const [before] = await tx.sql<Module[]>`
        select m.module_id, m.env_id, m.domain, m.product, m.wasm_hash from products p join modules m using (module_id)
        where p.env_id = ${env} and p.domain = ${module.domain} and p.product = ${module.product}`;
      if (before?.module_id === module.module_id) return;
      await tx.sql`
        insert into products (env_id, domain, product, module_id) values (${env}, ${module.domain}, ${module.product}, ${module.module_id})
        on conflict (env_id, domain, product) do update set module_id = excluded.module_id`;
      if (before) {
        await this.#status(tx, before.module_id, 'deprecated');
        await this.#told(tx, 'deprecated', before, caller);
      }
      await this.#status(tx, module.module_id, 'active');
      await this.#told(tx, 'activated', module, caller);
    });
    return this.get(env, module.module_id);
  }

  async deprecate({ env, params, caller }: Of<'deprecateModule'>): Promise<Module> {
    const module = await this.owned(env, params.module_id, caller);
    await this.#ctx.db.tx(async tx => {
      const gone = await tx.sql<object[]>`delete from products where module_id = ${module.module_id} returning 1`;
      if (gone.length === 0) throw this.#ctx.problem('module_not_active', { detail: `It is ${module.status}.` });
      await this.#status(tx, module.module_id, 'deprecated');
      await this.#told(tx, 'deprecated', module, caller);
    });
    return this.get(env, module.module_id);
  }

  async remove({ env, params, caller }: Of<'deleteModule'>): Promise<void> {
    const module = await this.owned(env, params.module_id, caller);
    await this.#ctx.db.tx(async tx => {
      const [now] = await tx.sql<{ status: string }[]>`select status from modules where module_id = ${module.module_id} for update`;
      if (now?.status === 'active')
        throw this.#ctx.problem('module_active', { detail: 'Deprecate it first, or activate another version.' });
      await tx.sql`delete from modules where module_id = ${module.module_id}`;
      await tx.enqueue('discard', { storage_key: module.storage_key });
      await this.#told(tx, 'deleted', module, caller);
    });
  }

  async validated(module: Module, caller: Caller): Promise<void> {
    await this.#ctx.db.tx(async tx => {
      await tx.sql`update modules set validated_at = ${this.#ctx.clock.now()}, updated_at = ${this.#ctx.clock.now()}
        where module_id = ${module.module_id}`;
      await this.#told(tx, 'validated', module, caller);
    });
  }

  /** A module that the caller may change: the own one, or any where policy makes the caller an administrator (FUN-020). */
  async owned(env: string, moduleId: string, caller: Caller): Promise<Module> {
    await this.#enablement.require(env);
    const module = await this.get(env, moduleId);
    const allowed =
      module.owner === nameOf(caller) || (await this.#ctx.policy.allows(caller, 'func:modules:admin', { type: 'module', id: moduleId }));
    if (!allowed) throw this.#ctx.problem('owner_required', { detail: 'Ask its owner, or an administrator of functions.' });
    return module;
  }

  #decode(text: string): Uint8Array<ArrayBuffer> {
    const bytes = Uint8Array.from(Buffer.from(text, 'base64'));
    if (bytes.length > MAX_MODULE) throw this.#ctx.problem('module_too_large', { detail: `A module has at most ${MAX_MODULE} bytes.` });
    return bytes;
  }

  async #byContent(env: string, domain: string, product: string, hash: string): Promise<Module | undefined> {
    const [found] = await this.#ctx.db.sql<{ module_id: string }[]>`
      select module_id from modules where env_id = ${env} and domain = ${domain} and product = ${product} and wasm_hash = ${hash}`;
    return found && this.get(env, found.module_id);
  }

  #select(env: string, moduleId: string) {
    return this.#ctx.db.sql<Module[]>`
      select m.module_id, m.env_id, m.domain, m.product, m.version_label, m.status, m.validated_at, m.storage_key, m.source_language,
        m.hooks, m.parameters, m.wasm_hash, m.size_bytes,
        m.owner, m.created_at, m.updated_at, p.module_id is not null as active
      from modules m left join products p on p.module_id = m.module_id where m.env_id = ${env} and m.module_id = ${moduleId}`;
  }

  async #status(tx: Tx, moduleId: string, status: string): Promise<void> {
    await tx.sql`update modules set status = ${status}, updated_at = ${this.#ctx.clock.now()} where module_id = ${moduleId}`;
  }

  async #told(
    tx: Tx,
    change: Change,
    { env_id, module_id, domain, product, wasm_hash }: Pick<Module, 'env_id' | 'module_id' | 'domain' | 'product' | 'wasm_hash'>,
    caller: Caller,
  ): Promise<void> {
    await tx.emit(`platform:func:module:${change}`, env_id, { module_id, domain, product, wasm_hash });
    await tx.audit({ action: `module.${change}`, envId: env_id, caller, resource: { type: 'module', id: module_id } });
  }

  /** Best effort: what stays is bytes that no row names (FUN-008). */
  async #discard(key: string): Promise<void> {
    await this.#objects.delete(key).catch(err => this.#ctx.log.warn({ err, key }, 'the bytes of a module that has no row stay'));
  }
}
