import { type RequestOf, SYSTEM } from '@platform/sdk';
import type { Org, TenantSnapshot } from '../../contract/schema/tenant.ts';
import type { Access } from './access.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx, RegistryTx } from '../context.ts';
import type { DomainChanges } from '../domain-changes.ts';
import { brokenConstraint } from './broken-constraint.ts';
import { requireOrgDomain, taken } from './host-ownership.ts';
import { decodeCursor, page } from '../keyset.ts';
import { releaseHost } from './sign-in-host.ts';
import { isUniqueViolation, requireSlug } from './slug.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const PROVISIONING_MS = 10_000;

/** Snapshot of an organization: env members are null (G-SYS-01). */
export const orgSnapshot = (org: Org): TenantSnapshot => ({
  env_id: null,
  env_slug: null,
  env_display_name: null,
  org_id: org.org_id,
  org_slug: org.slug,
  org_domain: org.org_domain,
  org_display_name: org.display_name,
  auth_domain: null,
  status: org.status,
});

/** Organizations: the record, its event and its access model come into being together or not at all (registry rule 3). */
export class Orgs {
  readonly #ctx: Ctx;
  readonly #access: Access;
  readonly #audit: AuditTrail;
  readonly #changes: DomainChanges;

  constructor(ctx: Ctx, parts: { access: Access; audit: AuditTrail; changes: DomainChanges }) {
    this.#ctx = ctx;
    this.#access = parts.access;
    this.#audit = parts.audit;
    this.#changes = parts.changes;
  }

  async create({ body, caller, correlationId }: RequestOf<Contract, 'createOrg'>): Promise<Org> {
    const { db, services, problem, platform } = this.#ctx;
    requireSlug(this.#ctx, body.slug);
    const row = { org_id: platform.newId(), slug: body.slug, display_name: body.display_name, org_domain: body.org_domain ?? `${body.slug}.${platform.domain}` };
    if (body.org_domain !== undefined) await requireOrgDomain(this.#ctx, row, row.org_domain);
    const org = await this.#insert(row);
    const owner = caller.userId;
    try {
      await services.identity.provisionAccess({
        body: { template: 'org', org_id: org.org_id, ...(owner ? { owner } : {}) },
        targetEnvId: SYSTEM.envId,
        signal: AbortSignal.timeout(PROVISIONING_MS),
        idempotencyKey: org.org_id,
      });
    } catch (cause) {
      // Nobody has heard of this organization yet: its event is held. A retry must start clean (registry rule 5).
      await db.tx(async tx => {
        await tx.drop(org.org_id);
        await tx.sql`delete from orgs where org_id = ${org.org_id}`;
      });
      throw problem('provisioning_failed', { cause });
    }
    await db.tx(async tx => {
      await tx.release(org.org_id);
      if (owner) await tx.emit('platform:sys:identity:updated', SYSTEM.envId, { env_id: SYSTEM.envId, subject_ids: [owner] });
      await this.#audit.write(tx, { action: 'org.created', envId: SYSTEM.envId, caller, correlationId, resource: { type: 'org', id: org.org_id }, details: { slug: org.slug } });
    });
    await this.#changes.publish({ scope: 'org', org_id: org.org_id });
    return org;
  }

  async list({ query, caller }: RequestOf<Contract, 'listOrgs'>) {
    const limit = query.limit ?? 50;
    const after = decodeCursor(this.#ctx, query.cursor);
    const everything = caller.platformAdmin || (caller.kind === 'machine' && caller.vertical === 'platform');
    const reachable = everything ? [] : [...(await this.#access.levels(caller)).keys()];
    const rows = await this.#ctx.db.sql<Org[]>`
      select * from orgs
      where (${everything} or org_id = any(${reachable}::uuid[]))
        and (${query.status ?? null}::text is null or status = ${query.status ?? null})
        and (${after?.at ?? null}::timestamptz is null or (created_at, org_id) < (${after?.at ?? null}::timestamptz, ${after?.id ?? null}::uuid))
      order by created_at desc, org_id desc limit ${limit + 1}`;
    return page(rows, limit, ({ created_at, org_id }) => ({ at: created_at, id: org_id }));
  }

  async get({ params, caller }: RequestOf<Contract, 'getOrg'>): Promise<Org> {
    return this.#access.org(caller, this.#id(params.id));
  }

  async update({ params, body, caller, correlationId }: RequestOf<Contract, 'updateOrg'>): Promise<Org> {
    const { problem, db } = this.#ctx;
    const before = await this.#access.org(caller, this.#id(params.id), 'admin');
    if (body.slug !== undefined && body.slug !== before.slug) throw problem('immutable_field', { detail: 'Archive the organization and create another to change its slug.' });
    if (before.status === 'archived') throw problem('record_archived');
    if (body.status !== undefined && body.status !== before.status) {
      if (!caller.platformAdmin) throw problem('platform_admin_required');
      this.#refuseSystem(before);
    } else if (before.status === 'suspended') throw problem('org_suspended');
    if (body.org_domain !== undefined && body.org_domain !== before.org_domain) await requireOrgDomain(this.#ctx, before, body.org_domain);
    const org = await db
      .tx(async tx => {
        const [changed] = await tx.sql<[Org]>`
        update orgs set display_name = ${body.display_name ?? before.display_name}, org_domain = ${body.org_domain ?? before.org_domain},
          status = ${body.status ?? before.status}, updated_at = now(), version = version + 1
        where org_id = ${before.org_id} returning *`;
        await tx.emit('platform:sys:org:updated', SYSTEM.envId, orgSnapshot(changed));
        await this.#audit.write(tx, { action: 'org.updated', envId: SYSTEM.envId, caller, correlationId, resource: { type: 'org', id: before.org_id }, details: { ...body } });
        return changed;
      })
      .catch(cause => {
        // The domain itself, or a host that an application would move to.
        throw brokenConstraint(cause) ? taken(this.#ctx, '/org_domain', body.org_domain ?? before.org_domain, cause) : cause;
      });
    await this.#changes.publish({ scope: 'org', org_id: org.org_id });
    return org;
  }

  /** A repeat answers the same and says nothing twice. */
  async archive({ params, caller, correlationId }: RequestOf<Contract, 'archiveOrg'>): Promise<Org> {
    const before = await this.#access.org(caller, this.#id(params.id), 'owner');
    this.#refuseSystem(before);
    if (before.status === 'archived') return before;
    const org = await this.#ctx.db.tx(async tx => {
      const [archived] = await tx.sql<Org[]>`update orgs set status = 'archived', updated_at = now(), version = version + 1 where org_id = ${before.org_id} and status <> 'archived' returning *`;
      if (!archived) return before;
      // An orphan of a crashed create has an event nobody heard; it goes with the record (C9).
      await tx.drop(before.org_id);
      await tx.emit('platform:sys:org:archived', SYSTEM.envId, { org_id: before.org_id });
      await this.#audit.write(tx, { action: 'org.archived', envId: SYSTEM.envId, caller, correlationId, resource: { type: 'org', id: before.org_id } });
      return archived;
    });
    const envs = await this.#ctx.db.sql<{ env_id: string; org_id: string }[]>`select env_id, org_id from envs where org_id = ${org.org_id}`;
    for (const env of envs) await releaseHost(this.#ctx, env);
    await this.#changes.publish({ scope: 'org', org_id: org.org_id });
    return org;
  }

  async delete({ params, caller, correlationId }: RequestOf<Contract, 'deleteOrg'>): Promise<void> {
    const org = await this.#access.org(caller, this.#id(params.id), 'owner');
    this.#refuseSystem(org);
    const gone = await this.#ctx.db.tx(async tx => {
      const envs = await tx.sql<{ env_id: string; org_id: string; slug: string }[]>`select env_id, org_id, slug from envs where org_id = ${org.org_id} for update`;
      for (const env of envs) await deleteEnvRows(tx, env.env_id, `${org.org_id}/${env.slug}`, org.org_id);
      await tx.drop(org.org_id);
      await tx.sql`delete from branding where subject_kind = 'org' and subject_id = ${org.org_id}`;
      await tx.sql`delete from orgs where org_id = ${org.org_id}`;
      await tx.sql`insert into tombstones (kind, name) values ('org_slug', ${org.slug}) on conflict do nothing`;
      await tx.emit('platform:sys:org:deleted', SYSTEM.envId, { org_id: org.org_id });
      await this.#audit.write(tx, { action: 'org.deleted', envId: SYSTEM.envId, caller, correlationId, resource: { type: 'org', id: org.org_id } });
      return envs;
    });
    for (const env of gone) await releaseHost(this.#ctx, env);
    await this.#changes.publish({ scope: 'org', org_id: org.org_id });
  }

  async #insert(row: { org_id: string; slug: string; display_name: string; org_domain: string }): Promise<Org> {
    try {
      return await this.#ctx.db.tx(async tx => {
        const [buried] = await tx.sql<object[]>`select 1 from tombstones where kind = 'org_slug' and name = ${row.slug}`;
        if (buried) throw this.#ctx.problem('slug_taken', { detail: 'The slug belonged to an organization that was deleted.' });
        const [org] = await tx.sql<[Org]>`insert into orgs ${tx.sql.row(row)} returning *`;
        await tx.emit('platform:sys:org:created', SYSTEM.envId, orgSnapshot(org), org.org_id);
        return org;
      });
    } catch (cause) {
      if (brokenConstraint(cause) === 'orgs_domain') throw taken(this.#ctx, '/org_domain', row.org_domain, cause);
      if (isUniqueViolation(cause)) throw this.#ctx.problem('slug_taken', { detail: `"${row.slug}" is in use.`, extra: { errors: [{ pointer: '/slug', code: 'taken', message: 'is in use' }] } });
      throw cause;
    }
  }

  #id(id: string): string {
    if (!UUID.test(id)) throw this.#ctx.problem('org_not_found', { detail: 'Not an organization id.' });
    return id;
  }

  #refuseSystem(org: Org): void {
    if (org.org_id === SYSTEM.orgId) throw this.#ctx.problem('system_record_protected');
  }
}

/** Everything of one environment that lives here, its `deleted` event included (registry, cascade). */
export async function deleteEnvRows(tx: RegistryTx, envId: string, slugKey: string, orgId: string): Promise<void> {
  await tx.drop(envId);
  await tx.sql`delete from branding where subject_kind = 'env' and subject_id = ${envId}`;
  await tx.sql`delete from policy_sets where env_id = ${envId}`;
  await tx.sql`delete from policy_relations where env_id = ${envId}`;
  await tx.sql`delete from policy_attributes where env_id = ${envId}`;
  await tx.sql`delete from envs where env_id = ${envId}`;
  await tx.sql`insert into tombstones (kind, name) values ('env_slug', ${slugKey}) on conflict do nothing`;
  await tx.emit('platform:sys:env:deleted', envId, { env_id: envId, org_id: orgId });
}
