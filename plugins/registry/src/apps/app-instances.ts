import { brokenConstraint, type Caller, reply, type RequestOf, sorted, SYSTEM } from '@platform/sdk';
import type { AppInstance, AppInstanceChange } from '../../contract/schema/app.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx, RegistryTx } from '../context.ts';
import type { DomainChanges } from '../domain-changes.ts';
import type { ServiceLabels } from '../resolver/service-labels.ts';
import type { Access } from '../tenants/access.ts';
import { taken } from '../tenants/host-ownership.ts';
import { requireSlug } from '../tenants/slug.ts';
import { holdMutable, requireMutable } from '../tenants/status.ts';
import type { Verticals } from '../verticals/verticals.ts';
import { appInstance, type AppRow, hostsOf, selectApps } from './app-row.ts';
import { requireGate, requireKnownNames } from './app-settings.ts';

interface Parts {
  readonly access: Access;
  readonly audit: AuditTrail;
  readonly changes: DomainChanges;
  readonly verticals: Verticals;
  readonly labels: ServiceLabels;
}
type Archiving = Pick<RequestOf<Contract, 'archiveApplication'>, 'caller' | 'correlationId' | 'ifMatch'>;
type Where = { readonly env_id: string; readonly app_instance_id: string };

/** App instances: an app as people reach it in one environment (G-SYS-08). Life: active → archived. */
export class AppInstances {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async list({ query, caller }: Pick<RequestOf<Contract, 'applicationRows'>, 'query' | 'caller'>, envId: string) {
    await this.#parts.access.env(caller, envId);
    const { sql } = this.#ctx.db;
    const spec = sorted({ list: `applications ${envId}`, order: { 'a.created_at': 'time', 'a.app_instance_id': 'id' } }, query, {
      name: ['a.name', 'text'],
      slug: ['a.slug', 'text'],
    });
    const { items, next_cursor } = await this.#ctx.page(query, spec, ({ where, order, limit }) =>
      selectApps(sql, sql`where a.env_id = ${envId} and ${where} order by ${order} limit ${limit}`),
    );
    return { items: items.map(appInstance), next_cursor };
  }

  async get({ params, caller }: RequestOf<Contract, 'getApplication'>): Promise<AppInstance> {
    await this.#parts.access.env(caller, params.env_id);
    return appInstance(await this.row(params));
  }

  async create({ params, body, caller, correlationId }: RequestOf<Contract, 'createApplication'>) {
    const env = await this.#parts.access.env(caller, params.env_id, 'admin');
    requireSlug(this.#ctx, body.slug);
    const hostname = `${body.slug}.${env.slug}.${env.org.org_domain}`;
    // A service answers before an app on the same label (G-K-15): the app would never be reached.
    if (await this.#parts.labels.serviceOf(body.slug)) throw taken(this.#ctx, '/slug', hostname);
    const settings = { auth_mode: body.auth_mode ?? 'self_service', auth_group: body.auth_group ?? null } as const;
    requireGate(this.#ctx, settings);
    await requireKnownNames(this.#ctx, this.#parts.verticals, body);
    const id = this.#ctx.platform.newId();
    const row = await this.#write({ env_id: env.env_id, app_instance_id: id }, { slug: body.slug, hostname }, async tx => {
      const { org } = await holdMutable(this.#ctx, tx.sql, env);
      await tx.sql`insert into app_instances ${tx.sql.row({
        app_instance_id: id,
        env_id: env.env_id,
        app_id: body.app_id,
        slug: body.slug,
        name: body.name,
        // The organization may have got another domain since.
        hostname: `${body.slug}.${env.slug}.${org.org_domain}`,
        oauth_client_id: body.oauth_client_id ?? null,
        feature_flags: tx.sql.json(body.feature_flags ?? {}),
        scope_whitelist: tx.sql.json(body.scope_whitelist ?? []),
        service_whitelist: tx.sql.json(body.service_whitelist ?? []),
        ...settings,
        allow_signup: body.allow_signup ?? false,
      })}`;
      await tx.emit('platform:sys:app:created', env.env_id, { env_id: env.env_id, app_instance_id: id, app_id: body.app_id });
      await this.#note(
        tx,
        'app.created',
        { env_id: env.env_id, app_instance_id: id },
        { caller, correlationId, details: { app_id: body.app_id, slug: body.slug } },
      );
    });
    await this.publish(row);
    return reply(appInstance(row), { status: 201, headers: { location: `/v1/env/${env.env_id}/applications/${id}` } });
  }

  async update({ params, body, caller, correlationId, ifMatch }: RequestOf<Contract, 'updateApplication'>): Promise<AppInstance> {
    const before = await this.writable(caller, params);
    this.#refuseMoved(before, body);
    requireGate(this.#ctx, {
      auth_mode: body.auth_mode ?? before.auth_mode,
      auth_group: body.auth_group === undefined ? before.auth_group : body.auth_group,
    });
    await requireKnownNames(this.#ctx, this.#parts.verticals, body);
    const { app_id: _app, slug: _slug, ...settings } = body;
    const columns = Object.fromEntries(
      Object.entries(settings).map(([name, value]) => [
        name,
        typeof value === 'object' && value !== null ? this.#ctx.db.sql.json(value) : value,
      ]),
    );
    const row = await this.#write(params, before, async tx => {
      await this.hold(tx, before);
      const [held] = await tx.sql<
        [{ version: number }]
      >`select version from app_instances where app_instance_id = ${before.app_instance_id} for update`;
      this.#ctx.requireVersion(ifMatch, held.version);
      await tx.sql`
        update app_instances set ${tx.sql.row({ ...columns, updated_at: this.#ctx.clock.now().toISOString() })}, version = version + 1
        where app_instance_id = ${before.app_instance_id}`;
      await tx.emit('platform:sys:app:updated', before.env_id, {
        env_id: before.env_id,
        app_instance_id: before.app_instance_id,
        app_id: before.app_id,
      });
      await this.#note(tx, 'app.updated', before, { caller, correlationId, details: { ...body } });
    });
    await this.publish(row);
    return appInstance(row);
  }

  /** A repeat answers the same and says nothing twice. */
  async archive(where: Where, { caller, correlationId, ifMatch }: Archiving): Promise<AppInstance> {
    await this.#parts.access.env(caller, where.env_id, 'admin');
    const before = await this.row(where);
    this.#refuseSystem(before);
    if (before.status === 'archived') {
      this.#ctx.requireVersion(ifMatch, before.version);
      return appInstance(before);
    }
    const row = await this.#write(where, before, async tx => {
      await holdMutable(this.#ctx, tx.sql, before);
      const [held] = await tx.sql<[Pick<AppRow, 'status' | 'version'>]>`
        select status, version from app_instances where app_instance_id = ${before.app_instance_id} for update`;
      this.#ctx.requireVersion(ifMatch, held.version);
      if (held.status === 'archived') return;
      await tx.sql`update app_instances set status = 'archived', updated_at = now(), version = version + 1
        where app_instance_id = ${before.app_instance_id}`;
      await tx.emit('platform:sys:app:archived', before.env_id, {
        env_id: before.env_id,
        app_instance_id: before.app_instance_id,
        app_id: before.app_id,
      });
      await this.#note(tx, 'app.archived', before, { caller, correlationId });
    });
    await this.publish(before);
    return appInstance(row);
  }

  /** One instance of an environment; one of another is not there. */
  async row({ env_id: envId, app_instance_id: id }: Where): Promise<AppRow> {
    const { sql } = this.#ctx.db;
    const [row] = await selectApps(sql, sql`where a.app_instance_id = ${id} and a.env_id = ${envId}`);
    if (!row) throw this.#ctx.problem('app_instance_not_found', { detail: `No app instance ${id} in this environment.` });
    return row;
  }

  /** The instance, when the caller may change it and it may still change. */
  async writable(caller: Caller, where: Where): Promise<AppRow> {
    const env = await this.#parts.access.env(caller, where.env_id, 'admin');
    const row = await this.row(where);
    this.#refuseSystem(row);
    requireMutable(this.#ctx, { org: env.org, env });
    this.#refuseArchived(row);
    return row;
  }

  /** The same inside the transaction of the change: it stays so until that ends. */
  async hold(tx: RegistryTx, row: AppRow): Promise<void> {
    await holdMutable(this.#ctx, tx.sql, row);
    const [now] = await tx.sql<
      Pick<AppRow, 'status'>[]
    >`select status from app_instances where app_instance_id = ${row.app_instance_id} for update`;
    this.#refuseArchived(now);
  }

  publish(row: AppRow): Promise<void> {
    return this.#parts.changes.publish({
      scope: 'app',
      org_id: row.org_id,
      env_id: row.env_id,
      app_instance_id: row.app_instance_id,
      hostnames: hostsOf(row),
    });
  }

  async #write(
    where: Where,
    { slug, hostname }: { slug: string; hostname: string },
    work: (tx: RegistryTx) => Promise<void>,
  ): Promise<AppRow> {
    try {
      return await this.#ctx.db.tx(async tx => {
        await work(tx);
        const [row] = await selectApps(tx.sql, tx.sql`where a.app_instance_id = ${where.app_instance_id}`);
        return row as AppRow;
      });
    } catch (cause) {
      switch (brokenConstraint(cause)) {
        case 'app_instances_slug':
          throw this.#ctx.problem('slug_taken', {
            detail: `"${slug}" is in use in this environment.`,
            extra: { errors: [{ pointer: '/slug', code: 'taken', message: 'is in use' }] },
          });
        case 'app_instances_client':
          throw this.#ctx.problem('oauth_client_taken', {
            detail: 'Give each app instance an OAuth client of its own.',
            extra: { errors: [{ pointer: '/oauth_client_id', code: 'taken', message: 'is in use' }] },
          });
        case 'hostnames_pkey':
          throw taken(this.#ctx, '/slug', hostname, cause);
        default:
          throw cause;
      }
    }
  }

  #note(
    tx: RegistryTx,
    action: string,
    where: Where,
    more: { caller: Caller; correlationId: string; details?: Record<string, unknown> },
  ): Promise<void> {
    return this.#parts.audit.write(tx, {
      action,
      envId: where.env_id,
      resource: { type: 'app_instance', id: where.app_instance_id },
      ...more,
    });
  }

  #refuseMoved(before: AppRow, body: AppInstanceChange): void {
    for (const member of ['slug', 'app_id'] as const)
      if (body[member] !== undefined && body[member] !== before[member])
        throw this.#ctx.problem('immutable_field', {
          detail: 'Archive the app instance and create another.',
          extra: { errors: [{ pointer: `/${member}`, code: 'immutable', message: 'cannot change' }] },
        });
  }

  #refuseArchived(row: Pick<AppRow, 'status'> | undefined): void {
    if (row?.status !== 'active') throw this.#ctx.problem('record_archived', { detail: 'The app instance is archived; create another.' });
  }

  #refuseSystem(row: AppRow): void {
    if (row.app_instance_id === SYSTEM.consoleAppId)
      throw this.#ctx.problem('system_record_protected', { detail: 'The console is the same on every installation.' });
  }
}
