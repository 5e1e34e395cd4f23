import { type Caller, type RequestOf, type Sql, SYSTEM } from '@platform/sdk';
import { BRANDING_FIELDS, type Branding as Fields } from '../contract/schema/branding.ts';
import type { Access } from './tenants/access.ts';
import { holdMutable, holdMutableOrg } from './tenants/status.ts';
import type { AuditTrail } from './audit/audit-trail.ts';
import type { Contract, Ctx } from './context.ts';
import type { DomainChanges } from './domain-changes.ts';

/** Branding: an organization's base, an environment's override, merged with the non-empty override winning (G-SYS-09). */
export class Branding {
  readonly #ctx: Ctx;
  readonly #access: Access;
  readonly #audit: AuditTrail;
  readonly #changes: DomainChanges;

  constructor(ctx: Ctx, { access, audit, changes }: { access: Access; audit: AuditTrail; changes: DomainChanges }) {
    this.#ctx = ctx;
    this.#access = access;
    this.#audit = audit;
    this.#changes = changes;
  }

  async ofOrg({ params, caller }: RequestOf<Contract, 'orgBranding'>): Promise<Fields> {
    await this.#access.org(caller, params.id);
    return this.#read('org', params.id);
  }

  async ofEnv({ params, caller }: RequestOf<Contract, 'envBranding'>): Promise<Fields> {
    await this.#access.env(caller, params.id);
    return this.#read('env', params.id);
  }

  async replaceOrg({ params, body, caller, correlationId }: RequestOf<Contract, 'putOrgBranding'>): Promise<Fields> {
    const { org_id } = await this.#access.org(caller, params.id, 'admin');
    return this.#write({ kind: 'org', body, caller, correlationId }, { org_id }, sql => holdMutableOrg(this.#ctx, sql, org_id));
  }

  async replaceEnv({ params, body, caller, correlationId }: RequestOf<Contract, 'putEnvBranding'>): Promise<Fields> {
    const env = await this.#access.env(caller, params.id, 'admin');
    return this.#write({ kind: 'env', body, caller, correlationId }, { env_id: env.env_id, org_id: env.org_id }, sql =>
      holdMutable(this.#ctx, sql, env),
    );
  }

  async merged({ params, caller }: RequestOf<Contract, 'mergedBranding'>) {
    const { org_id: orgId } = await this.#access.env(caller, params.id);
    const [base, override] = await Promise.all([this.#read('org', orgId), this.#read('env', params.id)]);
    const sources: Record<string, 'org' | 'env' | 'default'> = {};
    const merged: Record<string, unknown> = {};
    for (const field of BRANDING_FIELDS) {
      sources[field] = override[field] ? 'env' : base[field] ? 'org' : 'default';
      const value = override[field] || base[field];
      if (value) merged[field] = value;
    }
    return { ...(merged as Fields), sources };
  }

  async #read(kind: 'org' | 'env', id: string): Promise<Fields> {
    const [row] = await this.#ctx.db.sql<
      { fields: Fields }[]
    >`select fields from branding where subject_kind = ${kind} and subject_id = ${id}`;
    return row?.fields ?? {};
  }

  async #write(
    { kind, body, caller, correlationId }: { kind: 'org' | 'env'; body: Fields; caller: Caller; correlationId: string },
    where: { org_id: string; env_id?: string },
    hold: (sql: Sql) => Promise<unknown>,
  ): Promise<Fields> {
    const fields = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== '' && value !== null)) as Fields;
    const id = where.env_id ?? where.org_id;
    await this.#ctx.db.tx(async tx => {
      const { sql } = tx;
      await hold(sql);
      const [before] = await sql<{ fields: Fields }[]>`
        select fields from branding where subject_kind = ${kind} and subject_id = ${id} for update`;
      await sql`insert into branding (subject_kind, subject_id, fields) values (${kind}, ${id}, ${sql.json(fields)})
        on conflict (subject_kind, subject_id) do update set fields = excluded.fields, updated_at = now()`;
      const changed = BRANDING_FIELDS.filter(field => fields[field] !== before?.fields[field]);
      if (changed.length === 0) return;
      await this.#audit.write(tx, {
        action: `${kind}.branding_replaced`,
        envId: where.env_id ?? SYSTEM.envId,
        caller,
        correlationId,
        resource: { type: kind, id },
        // A style sheet is long: the names say what to look at.
        details: { changed },
      });
    });
    await this.#changes.publish({ scope: 'branding', ...where });
    return fields;
  }
}
