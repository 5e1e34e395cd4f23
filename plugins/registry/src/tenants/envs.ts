import { isProblem, type RequestOf, SYSTEM } from '@platform/sdk';
import type { Env, Org, TenantSnapshot } from '../../contract/schema/tenant.ts';
import type { Access } from './access.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx } from '../context.ts';
import type { DomainChanges } from '../domain-changes.ts';
import { brokenConstraint } from './broken-constraint.ts';
import { requireAuthDomain, taken } from './host-ownership.ts';
import { decodeCursor, page } from '../keyset.ts';
import { deleteEnvRows } from './orgs.ts';
import { authHostOf, releaseHost } from './sign-in-host.ts';
import type { PolicyStore } from '../policy/policy-store.ts';
import { isUniqueViolation, requireSlug } from './slug.ts';

const PROVISIONING_MS = 10_000;

/** Snapshot of an environment within its organization; an active one shows its organization's status (G-SYS-01). */
export const envSnapshot = (env: Env, org: Org): TenantSnapshot => ({
  env_id: env.env_id,
  env_slug: env.slug,
  env_display_name: env.display_name,
  org_id: org.org_id,
  org_slug: org.slug,
  org_domain: org.org_domain,
  org_display_name: org.display_name,
  auth_domain: env.auth_domain,
  status: env.status === 'active' ? org.status : env.status,
});

/** Environments: record, platform policies, access model and sign-in realm in one synchronous create (registry rules 3 and 4). */
export class Envs {
  readonly #ctx: Ctx;
  readonly #access: Access;
  readonly #audit: AuditTrail;
  readonly #changes: DomainChanges;
  readonly #policies: PolicyStore;

  constructor(ctx: Ctx, parts: { access: Access; audit: AuditTrail; changes: DomainChanges; policies: PolicyStore }) {
    this.#ctx = ctx;
    this.#access = parts.access;
    this.#audit = parts.audit;
    this.#changes = parts.changes;
    this.#policies = parts.policies;
  }

  async create({ body, caller, correlationId }: RequestOf<Contract, 'createEnv'>): Promise<Env> {
    const { db, services, problem, platform } = this.#ctx;
    requireSlug(this.#ctx, body.slug);
    const org = await this.#access.org(caller, body.org_id, 'admin');
    if (org.status !== 'active') throw problem('org_not_active', { detail: `The organization is ${org.status}.` });
    if (body.auth_domain !== undefined) await requireAuthDomain(this.#ctx, org, body.auth_domain);
    const env = await this.#insert(org, { env_id: platform.newId(), org_id: org.org_id, slug: body.slug, display_name: body.display_name, auth_domain: body.auth_domain ?? null });
    const owner = caller.userId;
    const signal = AbortSignal.timeout(PROVISIONING_MS);
    try {
      // The host last: a try that failed before must not keep it from the next (registry rule 5).
      await services.identity.provisionAccess({
        body: { template: 'env', org_id: org.org_id, env_id: env.env_id, ...(owner ? { owner } : {}) },
        targetEnvId: env.env_id,
        signal,
        idempotencyKey: env.env_id,
      });
      await services.identity.putRealm({ params: { env_id: env.env_id }, body: { host: authHostOf(env, org, platform.domain), org_id: org.org_id }, signal });
    } catch (cause) {
      await db.tx(async tx => {
        await tx.drop(env.env_id);
        await tx.sql`delete from policy_sets where env_id = ${env.env_id}`;
        await tx.sql`delete from envs where env_id = ${env.env_id}`;
      });
      await releaseHost(this.#ctx, env);
      throw problem('provisioning_failed', { cause });
    }
    await db.tx(async tx => {
      await tx.release(env.env_id);
      if (owner) for (const realm of [SYSTEM.envId, env.env_id]) await tx.emit('platform:sys:identity:updated', realm, { env_id: realm, subject_ids: [owner] });
      await this.#audit.write(tx, { action: 'env.created', envId: env.env_id, caller, correlationId, resource: { type: 'env', id: env.env_id }, details: { slug: env.slug } });
    });
    await this.#changes.publish({ scope: 'env', org_id: org.org_id, env_id: env.env_id });
    return env;
  }

  async list({ query, caller }: RequestOf<Contract, 'listEnvs'>) {
    const limit = query.limit ?? 50;
    const after = decodeCursor(this.#ctx, query.cursor);
    if (query.org_id) await this.#access.org(caller, query.org_id);
    const everything = caller.platformAdmin || (caller.kind === 'machine' && caller.vertical === 'platform') || query.org_id !== undefined;
    const reachable = everything ? [] : [...(await this.#access.levels(caller)).keys()];
    const rows = await this.#ctx.db.sql<Env[]>`
      select * from envs
      where (${query.org_id ?? null}::uuid is null or org_id = ${query.org_id ?? null}::uuid)
        and (${everything} or org_id = any(${reachable}::uuid[]) or env_id = any(${reachable}::uuid[]))
        and (${after?.at ?? null}::timestamptz is null or (created_at, env_id) < (${after?.at ?? null}::timestamptz, ${after?.id ?? null}::uuid))
      order by created_at desc, env_id desc limit ${limit + 1}`;
    return page(rows, limit, ({ created_at, env_id }) => ({ at: created_at, id: env_id }));
  }

  async get({ params, caller }: RequestOf<Contract, 'getEnv'>): Promise<Env> {
    const { org: _, ...env } = await this.#access.env(caller, params.env_id);
    return env;
  }

  async update({ params, body, caller, correlationId }: RequestOf<Contract, 'updateEnv'>): Promise<Env> {
    const { problem, db } = this.#ctx;
    const { org, ...before } = await this.#access.env(caller, params.env_id, 'admin');
    if (body.slug !== undefined && body.slug !== before.slug) throw problem('immutable_field', { detail: 'Archive the environment and create another to change its slug.' });
    if (before.status === 'archived') throw problem('record_archived');
    if (body.status !== undefined && body.status !== before.status) {
      if (!caller.platformAdmin) throw problem('platform_admin_required');
      this.#refuseSystem(before);
    } else if (before.status === 'suspended') throw problem('env_suspended');
    if (body.auth_domain !== undefined && body.auth_domain !== before.auth_domain) await this.#moveHost(org, before, body.auth_domain);
    const env = await db.tx(async tx => {
      const [changed] = await tx.sql<[Env]>`
        update envs set display_name = ${body.display_name ?? before.display_name}, auth_domain = ${body.auth_domain === undefined ? before.auth_domain : body.auth_domain},
          status = ${body.status ?? before.status}, updated_at = now(), version = version + 1
        where env_id = ${before.env_id} returning *`;
      await tx.emit('platform:sys:env:updated', before.env_id, envSnapshot(changed, org));
      await this.#audit.write(tx, { action: 'env.updated', envId: before.env_id, caller, correlationId, resource: { type: 'env', id: before.env_id }, details: { ...body } });
      return changed;
    });
    await this.#changes.publish({ scope: 'env', org_id: org.org_id, env_id: env.env_id });
    return env;
  }

  async archive({ params, caller, correlationId }: RequestOf<Contract, 'archiveEnv'>): Promise<Env> {
    const { org, ...before } = await this.#access.env(caller, params.env_id, 'admin');
    this.#refuseSystem(before);
    if (before.status === 'archived') return before;
    const env = await this.#ctx.db.tx(async tx => {
      const [archived] = await tx.sql<Env[]>`update envs set status = 'archived', updated_at = now(), version = version + 1 where env_id = ${before.env_id} and status <> 'archived' returning *`;
      if (!archived) return before;
      await tx.drop(before.env_id);
      await tx.emit('platform:sys:env:archived', before.env_id, { env_id: before.env_id, org_id: org.org_id });
      await this.#audit.write(tx, { action: 'env.archived', envId: before.env_id, caller, correlationId, resource: { type: 'env', id: before.env_id } });
      return archived;
    });
    await releaseHost(this.#ctx, env);
    await this.#changes.publish({ scope: 'env', org_id: org.org_id, env_id: env.env_id });
    return env;
  }

  async delete({ params, caller, correlationId }: RequestOf<Contract, 'deleteEnv'>): Promise<void> {
    const { org, ...env } = await this.#access.env(caller, params.env_id, 'owner');
    this.#refuseSystem(env);
    await this.#ctx.db.tx(async tx => {
      await deleteEnvRows(tx, env.env_id, `${org.org_id}/${env.slug}`, org.org_id);
      await this.#audit.write(tx, { action: 'env.deleted', envId: SYSTEM.envId, caller, correlationId, resource: { type: 'env', id: env.env_id } });
    });
    await releaseHost(this.#ctx, env);
    await this.#changes.publish({ scope: 'env', org_id: org.org_id, env_id: env.env_id });
  }

  /** Before the record changes: the identity service has the last word on who signs in on a host. */
  async #moveHost(org: Org, env: Env, authDomain: string | null): Promise<void> {
    const { services, platform } = this.#ctx;
    if (authDomain !== null) {
      await requireAuthDomain(this.#ctx, org, authDomain);
      const [other] = await this.#ctx.db.sql<object[]>`select 1 from envs where auth_domain = ${authDomain} and env_id <> ${env.env_id}`;
      if (other) throw taken(this.#ctx, '/auth_domain', authDomain);
    }
    try {
      await services.identity.putRealm({ params: { env_id: env.env_id }, body: { host: authHostOf({ ...env, auth_domain: authDomain }, org, platform.domain), org_id: org.org_id } });
    } catch (cause) {
      if (isProblem(cause) && cause.code === 'host_taken') throw taken(this.#ctx, '/auth_domain', authDomain ?? '', cause);
      throw cause;
    }
  }

  async #insert(org: Org, row: { env_id: string; org_id: string; slug: string; display_name: string; auth_domain: string | null }): Promise<Env> {
    try {
      return await this.#ctx.db.tx(async tx => {
        const [buried] = await tx.sql<object[]>`select 1 from tombstones where kind = 'env_slug' and name = ${`${row.org_id}/${row.slug}`}`;
        if (buried) throw this.#ctx.problem('slug_taken', { detail: 'The slug belonged to an environment that was deleted.' });
        const [env] = await tx.sql<[Env]>`insert into envs ${tx.sql.row(row)} returning *`;
        // Before the access model, so that the first call into the environment passes (registry rule 4).
        await this.#policies.seed(tx, env.env_id);
        await tx.emit('platform:sys:env:created', env.env_id, envSnapshot(env, org), env.env_id);
        return env;
      });
    } catch (cause) {
      if (row.auth_domain !== null && ['envs_auth_domain_key', 'hostnames_pkey'].includes(brokenConstraint(cause) ?? '')) throw taken(this.#ctx, '/auth_domain', row.auth_domain, cause);
      if (isUniqueViolation(cause))
        throw this.#ctx.problem('slug_taken', { detail: `"${row.slug}" is in use in this organization.`, extra: { errors: [{ pointer: '/slug', code: 'taken', message: 'is in use' }] } });
      throw cause;
    }
  }

  #refuseSystem(env: Env): void {
    if (env.env_id === SYSTEM.envId) throw this.#ctx.problem('system_record_protected');
  }
}
