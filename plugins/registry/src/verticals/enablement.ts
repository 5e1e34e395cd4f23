import type { RequestOf } from '@platform/sdk';
import type { Access } from '../tenants/access.ts';
import { holdMutable } from '../tenants/status.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx } from '../context.ts';
import type { DomainChanges } from '../domain-changes.ts';
import type { Verticals } from './verticals.ts';

interface Row {
  readonly service: string;
  readonly enabled: boolean;
  readonly config: Record<string, unknown>;
  readonly updated_at: string;
}

/** Which services an environment uses; a missing row means enabled (G-SYS-05). */
export class Enablement {
  readonly #ctx: Ctx;
  readonly #parts: { access: Access; audit: AuditTrail; changes: DomainChanges; verticals: Verticals };

  constructor(ctx: Ctx, parts: { access: Access; audit: AuditTrail; changes: DomainChanges; verticals: Verticals }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async list({ params, caller }: RequestOf<Contract, 'listServices'>) {
    await this.#parts.access.env(caller, params.env_id);
    return this.#read(params.env_id);
  }

  async update({ params, body, caller, correlationId }: RequestOf<Contract, 'updateServices'>) {
    const { access, audit, changes, verticals } = this.#parts;
    const env = await access.env(caller, params.env_id, 'admin');
    const known = new Set(await verticals.serviceIds());
    const stranger = body.services.findIndex(({ service }) => !known.has(service));
    if (stranger >= 0)
      throw this.#ctx.problem('unknown_service', {
        extra: { errors: [{ pointer: `/services/${stranger}/service`, code: 'unknown_service', message: 'is not a registered service' }] },
      });
    await this.#ctx.db.tx(async tx => {
      await holdMutable(this.#ctx, tx.sql, env);
      await this.#refuseEssential(body.services);
      for (const { service, enabled, config } of body.services) {
        const changed = await tx.sql<object[]>`
          insert into service_enablement (env_id, service, enabled, config)
            values (${params.env_id}, ${service}, ${enabled}, ${tx.sql.json(config ?? {})})
          on conflict (env_id, service) do update set enabled = excluded.enabled, config = case
            when ${config !== undefined} then excluded.config else service_enablement.config end, updated_at = now()
            where service_enablement.enabled <> excluded.enabled
              or (${config !== undefined} and service_enablement.config <> excluded.config)
          returning 1`;
        if (changed.length === 0) continue;
        await tx.emit('platform:sys:service:updated', params.env_id, { env_id: params.env_id, service });
        await audit.write(tx, {
          action: enabled ? 'service.enabled' : 'service.disabled',
          envId: params.env_id,
          caller,
          correlationId,
          resource: { type: 'service', id: service },
        });
      }
    });
    await changes.publish({ scope: 'env', env_id: params.env_id, org_id: env.org_id });
    return this.#read(params.env_id);
  }

  /** What every environment needs stays on, or nothing there could turn it on again (F-12). */
  async #refuseEssential(changes: readonly { service: string; enabled: boolean }[]): Promise<void> {
    const essential = await this.#parts.verticals.essential();
    const refused = changes.findIndex(({ service, enabled }) => !enabled && essential.has(service));
    if (refused < 0) return;
    throw this.#ctx.problem('service_required', {
      detail: `${changes[refused]?.service} stays on in every environment: other services stop without it.`,
      extra: {
        errors: [{ pointer: `/services/${refused}/enabled`, code: 'service_required', message: 'is needed by the platform itself' }],
      },
    });
  }

  /** Service name to enabled, for the feature map of bootstrap (C36). */
  async features(envId: string): Promise<Record<string, boolean>> {
    const rows = await this.#ctx.db.sql<{ service: string; enabled: boolean }[]>`
      select registered.service, coalesce(entry.enabled, true) as enabled from (select distinct unnest(services) as service
        from verticals) registered
      left join service_enablement entry on entry.env_id = ${envId} and entry.service = registered.service order by registered.service`;
    const essential = await this.#parts.verticals.essential();
    return Object.fromEntries(rows.map(({ service, enabled }) => [service, enabled || essential.has(service)]));
  }

  async isEnabled(envId: string, service: string): Promise<boolean> {
    const [row] = await this.#ctx.db.sql<
      { enabled: boolean }[]
    >`select enabled from service_enablement where env_id = ${envId} and service = ${service}`;
    return (row?.enabled ?? true) || (await this.#parts.verticals.essential()).has(service);
  }

  async #read(envId: string) {
    const rows = await this.#ctx.db.sql<Row[]>`select service, enabled, config, updated_at from service_enablement where env_id = ${envId}`;
    const explicit = new Map(rows.map(row => [row.service, row]));
    const essential = await this.#parts.verticals.essential();
    const services = (await this.#parts.verticals.serviceIds()).map(service => {
      const row = explicit.get(service);
      return {
        service,
        enabled: essential.has(service) || (row?.enabled ?? true),
        essential: essential.has(service),
        config: row?.config ?? {},
        explicit: row !== undefined,
        updated_at: row?.updated_at ?? null,
      };
    });
    return { env_id: envId, services };
  }
}
