import { brokenConstraint, type Caller, type RequestOf, SYSTEM } from '@platform/sdk';
import type { Env, Org } from '../../contract/schema/tenant.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx, RegistryTx } from '../context.ts';
import { hostsOf } from '../apps/app-row.ts';
import type { DomainChange, DomainChanges } from '../domain-changes.ts';
import { type Access, isTrusted } from './access.ts';
import type { Creations } from './endings/creations.ts';
import { needProof } from './domain-proofs.ts';
import { requireOrgDomain, taken } from './host-ownership.ts';
import type { EnvironmentStates } from './environment-state.ts';
import type { IdentityFollowUps } from './endings/identity-follow-ups.ts';
import { requireSlug } from './slug.ts';
import { refuseSystem, requireChange } from './status.ts';
import { envSnapshot, orgSnapshot } from './snapshot.ts';
import { envSubject, orgSubject } from './subject.ts';

/** What organizations, environments and their deletion are made of. */
export interface TenantParts {
  readonly access: Access;
  readonly audit: AuditTrail;
  readonly changes: DomainChanges;
  readonly creations: Creations;
  readonly followUps: IdentityFollowUps;
  readonly states: EnvironmentStates;
}

/** Organizations: the record, its event and its access model come into being together or not at all (registry rule 3). */
export class Orgs {
  readonly #ctx: Ctx;
  readonly #access: Access;
  readonly #audit: AuditTrail;
  readonly #changes: DomainChanges;
  readonly #creations: Creations;
  readonly #followUps: IdentityFollowUps;
  readonly #states: EnvironmentStates;

  constructor(ctx: Ctx, parts: TenantParts) {
    this.#ctx = ctx;
    this.#access = parts.access;
    this.#audit = parts.audit;
    this.#changes = parts.changes;
    this.#creations = parts.creations;
    this.#followUps = parts.followUps;
    this.#states = parts.states;
  }

  async create({ body, caller, correlationId }: RequestOf<Contract, 'createOrg'>): Promise<Org> {
    const { platform } = this.#ctx;
    requireSlug(this.#ctx, body.slug);
    const row = {
      org_id: platform.newId(),
      slug: body.slug,
      display_name: body.display_name,
      org_domain: body.org_domain ?? `${body.slug}.${platform.domain}`,
    };
    const org = await this.#insert(row, caller, correlationId);
    await this.#creations.complete(orgSubject(org), caller, correlationId);
    await this.#changes.publish({ scope: 'org', org_id: org.org_id });
    return org;
  }

  async list({ query, caller }: RequestOf<Contract, 'listOrgs'>) {
    const everything = isTrusted(caller);
    const reachable = everything ? [] : [...(await this.#access.levels(caller)).orgs.keys()];
    const status = query.status ?? null;
    return this.#ctx.page(
      query,
      { list: `orgs ${status}`, order: { created_at: 'time', org_id: 'id' } },
      ({ where, order, limit }) => this.#ctx.db.sql<Org[]>`
      select * from orgs where (${everything} or org_id = any(${reachable}::uuid[])) and (${status}::text is null or status = ${status})
        and ${where}
      order by ${order} limit ${limit}`,
    );
  }

  async get({ params, caller }: RequestOf<Contract, 'getOrg'>): Promise<Org> {
    return this.#access.org(caller, params.id);
  }

  async update({ params, body, caller, correlationId, ifMatch }: RequestOf<Contract, 'updateOrg'>): Promise<Org> {
    const { problem, db } = this.#ctx;
    const { org_id: orgId } = await this.#access.org(caller, params.id, 'admin');
    const { org, moved, apps } = await db
      .tx(async tx => {
        const before = await this.#lock(tx, orgId);
        this.#ctx.requireVersion(ifMatch, before.version);
        if (body.slug !== undefined && body.slug !== before.slug)
          throw problem('immutable_field', { detail: 'Archive the organization and create another to change its slug.' });
        requireChange(this.#ctx, caller, body.status, { org: before });
        if (body.status !== undefined && body.status !== before.status) refuseSystem(this.#ctx, { org_id: orgId });
        const domain = body.org_domain ?? before.org_domain;
        if (domain !== before.org_domain) await requireOrgDomain(this.#ctx, tx.sql, before, domain);
        if (domain !== before.org_domain) await needProof(this.#ctx, tx.sql, orgId, domain);
        const [changed] = await tx.sql<[Org]>`
        update orgs set display_name = ${body.display_name ?? before.display_name}, org_domain = ${domain},
          status = ${body.status ?? before.status}, updated_at = now(), version = version + 1
        where org_id = ${orgId} returning *`;
        await tx.emit('platform:sys:org:updated', SYSTEM.envId, orgSnapshot(changed));
        // Services that keep snapshots of environments hear it of each: their status and domain are the organization's too (G-SYS-01).
        const shared = changed.status !== before.status || domain !== before.org_domain;
        const envs = shared ? await tx.sql<Env[]>`select * from envs where org_id = ${orgId} and status <> 'archived'` : [];
        for (const env of envs) await tx.emit('platform:sys:env:updated', env.env_id, envSnapshot(env, changed));
        const apps = domain === before.org_domain ? [] : await this.#movedApps(tx, { before, changed });
        const moves = domain === before.org_domain ? [] : envs.filter(env => env.auth_domain === null).map(envSubject);
        await this.#followUps.ask(tx, moves);
        await this.#audit.write(tx, {
          action: 'org.updated',
          envId: SYSTEM.envId,
          caller,
          correlationId,
          resource: { type: 'org', id: orgId },
          details: { ...body },
        });
        return { org: changed, moved: moves, apps };
      })
      .catch(cause => this.#conflict(cause, body));
    await this.#followUps.tryNow(moved);
    if (body.status !== undefined) await this.#states.publish({ orgId });
    await this.#changes.publish({ scope: 'org', org_id: orgId }, ...apps);
    return org;
  }

  /** Tells of each app instance that went along to the other domain; answers the hosts it left and those it has. */
  async #movedApps(tx: RegistryTx, { before, changed }: { before: Org; changed: Org }): Promise<DomainChange[]> {
    const { org_id } = changed;
    const apps = await tx.sql<{ app_instance_id: string; env_id: string; app_id: string; hostname: string }[]>`
      select a.app_instance_id, a.env_id, a.app_id, a.hostname from app_instances a join envs e using (env_id) where e.org_id = ${org_id}
        and e.status <> 'archived' and a.status = 'active'`;
    await tx.emitAll(
      'platform:sys:app:updated',
      apps.map(({ app_instance_id, env_id, app_id }) => ({ envId: env_id, payload: { env_id, app_instance_id, app_id } })),
    );
    return apps.map(({ app_instance_id, env_id, hostname }) => {
      const former = `${hostname.slice(0, -changed.org_domain.length)}${before.org_domain}`;
      return {
        scope: 'app',
        org_id,
        env_id,
        app_instance_id,
        hostnames: [...hostsOf({ hostname: former, fqdn: null }), ...hostsOf({ hostname, fqdn: null })],
      };
    });
  }

  /** A repeat answers the same and says nothing twice. */
  async archive({ params, caller, correlationId, ifMatch }: RequestOf<Contract, 'archiveOrg'>): Promise<Org> {
    const { org_id: orgId } = await this.#access.org(caller, params.id, 'owner');
    refuseSystem(this.#ctx, { org_id: orgId });
    const { org, released } = await this.#ctx.db.tx(async tx => {
      const before = await this.#lock(tx, orgId);
      this.#ctx.requireVersion(ifMatch, before.version);
      if (before.status === 'archived') return { org: before, released: [] };
      const [archived] = await tx.sql<
        [Org]
      >`update orgs set status = 'archived', updated_at = now(), version = version + 1 where org_id = ${orgId} returning *`;
      const envs = await tx.sql<Env[]>`select * from envs where org_id = ${orgId}`;
      // An orphan of a crashed create has an event nobody heard; it goes with the record (C9).
      await this.#creations.forget(tx, [orgId, ...envs.map(({ env_id }) => env_id)]);
      await this.#followUps.ask(tx, envs.map(envSubject));
      await tx.emit('platform:sys:org:archived', SYSTEM.envId, { org_id: orgId });
      await this.#audit.write(tx, {
        action: 'org.archived',
        envId: SYSTEM.envId,
        caller,
        correlationId,
        resource: { type: 'org', id: orgId },
      });
      return { org: archived, released: envs.map(envSubject) };
    });
    await this.#followUps.tryNow(released);
    await this.#states.publish({ orgId });
    await this.#changes.publish({ scope: 'org', org_id: orgId });
    return org;
  }

  async #insert(row: Pick<Org, 'org_id' | 'slug' | 'display_name' | 'org_domain'>, caller: Caller, correlationId: string): Promise<Org> {
    return this.#ctx.db
      .tx(async tx => {
        const [buried] = await tx.sql<object[]>`select 1 from tombstones where kind = 'org_slug' and name = ${row.slug}`;
        if (buried) throw this.#ctx.problem('slug_taken', { detail: 'The slug belonged to an organization that was deleted.' });
        // A domain that follows from the slug is as free as the slug.
        if (row.org_domain !== `${row.slug}.${this.#ctx.platform.domain}`) await requireOrgDomain(this.#ctx, tx.sql, row, row.org_domain);
        const [[org]] = await Promise.all([
          tx.sql<[Org]>`insert into orgs ${tx.sql.row(row)} returning *`,
          this.#creations.begin(tx, orgSubject(row), caller, correlationId),
        ]);
        await needProof(this.#ctx, tx.sql, org.org_id, org.org_domain);
        await tx.emit('platform:sys:org:created', SYSTEM.envId, orgSnapshot(org), org.org_id);
        return org;
      })
      .catch(cause => this.#conflict(cause, row));
  }

  /** What the indexes say about two at once, in the words of the request. */
  #conflict(cause: unknown, { slug = '', org_domain: domain = '' }: { slug?: string; org_domain?: string }): never {
    const broken = brokenConstraint(cause);
    if (broken === undefined) throw cause;
    // The domain itself, or a host that an application would move to.
    if (broken === 'orgs_domain' || broken === 'hostnames_pkey') throw taken(this.#ctx, '/org_domain', domain, cause);
    throw this.#ctx.problem('slug_taken', {
      detail: `"${slug}" is in use.`,
      extra: { errors: [{ pointer: '/slug', code: 'taken', message: 'is in use' }] },
    });
  }

  async #lock(tx: RegistryTx, orgId: string): Promise<Org> {
    const [org] = await tx.sql<Org[]>`select * from orgs where org_id = ${orgId} for update`;
    if (!org) throw this.#ctx.problem('org_not_found', { detail: 'It was deleted in the meantime.' });
    return org;
  }
}
