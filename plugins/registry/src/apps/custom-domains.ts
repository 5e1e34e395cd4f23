import { randomBytes } from 'node:crypto';
import { brokenConstraint, type Caller, type RequestOf } from '@platform/sdk';
import type { CustomDomain } from '../../contract/schema/app.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx, RegistryTx } from '../context.ts';
import { requireFqdn, taken } from '../tenants/host-ownership.ts';
import type { AppInstances } from './app-instances.ts';
import { type AppRow, challengeOf, domainOf } from './app-row.ts';
import type { DomainProof } from './domain-proof.ts';

type Where = { readonly env_id: string; readonly app_instance_id: string };
type By = { readonly caller: Caller; readonly correlationId: string };

/**
 * Custom domains. Life: pending → verified → failed, back to verified by another proof, or given up.
 * Asking reserves nothing: any number of organizations may have a name pending, each with a value of its own, and the first that shows its
 * value in DNS has it. Nobody can hold a name against its owner by asking first (G-SYS-08).
 */
export class CustomDomains {
  readonly #ctx: Ctx;
  readonly #apps: AppInstances;
  readonly #audit: AuditTrail;
  readonly #proof: DomainProof;

  constructor(ctx: Ctx, parts: { apps: AppInstances; audit: AuditTrail; proof: DomainProof }) {
    this.#ctx = ctx;
    this.#apps = parts.apps;
    this.#audit = parts.audit;
    this.#proof = parts.proof;
  }

  async get(request: RequestOf<Contract, 'getCustomDomain'>): Promise<CustomDomain> {
    const { custom_domain: domain } = await this.#apps.get(request);
    return domain ?? this.#absent();
  }

  async put({ params, body, caller, correlationId }: RequestOf<Contract, 'putCustomDomain'>): Promise<CustomDomain> {
    const before = await this.#apps.writable(caller, params);
    if (before.fqdn === body.fqdn) return domainOf(before) as CustomDomain;
    return this.#ask(
      before,
      { fqdn: body.fqdn, value: randomBytes(32).toString('base64url'), type: 'TXT', name: null },
      { caller, correlationId },
    );
  }

  /** The same with a challenge of the caller's own: one service of the platform asks the owner once, and both look (G-APP-05). */
  async challenge({ params, body, caller, correlationId }: RequestOf<Contract, 'challengeCustomDomain'>): Promise<CustomDomain> {
    const before = await this.#apps.writable(caller, params);
    const isKnown =
      before.fqdn === body.fqdn &&
      before.challenge_type === body.type &&
      before.challenge_name === body.name &&
      before.txt_value === body.value;
    if (isKnown) return domainOf(before) as CustomDomain;
    return this.#ask(before, body, { caller, correlationId });
  }

  async #ask(
    before: AppRow,
    asked: { fqdn: string; value: string; type: 'TXT' | 'CNAME'; name: string | null },
    by: By,
  ): Promise<CustomDomain> {
    await this.#requireFree(before, asked.fqdn);
    await this.#ctx.db.tx(async tx => {
      await this.#apps.hold(tx, before);
      await release(tx, before);
      await tx.sql`
        insert into custom_domains ${tx.sql.row({
          app_instance_id: before.app_instance_id,
          fqdn: asked.fqdn,
          txt_value: asked.value,
          challenge_type: asked.type,
          challenge_name: asked.name,
        })}
        on conflict (app_instance_id) do update set fqdn = excluded.fqdn, txt_value = excluded.txt_value,
          challenge_type = excluded.challenge_type,
          challenge_name = excluded.challenge_name, status = 'pending', verified_at = null, last_error = null, checked_at = null,
            failing_since = null`;
      await this.#tell(tx, 'app.domain_requested', before, by, asked.fqdn);
    });
    await this.#apps.publish(before);
    return domainOf(await this.#apps.row(before)) as CustomDomain;
  }

  async delete({ params, caller, correlationId }: RequestOf<Contract, 'deleteCustomDomain'>): Promise<void> {
    const before = await this.#apps.writable(caller, params);
    const { fqdn } = before;
    if (fqdn === null) return this.#absent();
    await this.#ctx.db.tx(async tx => {
      await this.#apps.hold(tx, before);
      await release(tx, before);
      await tx.sql`delete from custom_domains where app_instance_id = ${before.app_instance_id}`;
      await this.#tell(tx, 'app.domain_removed', before, { caller, correlationId }, fqdn);
    });
    await this.#apps.publish(before);
  }

  async verify(where: Where, by: By): Promise<CustomDomain> {
    const before = await this.#apps.writable(by.caller, where);
    const { fqdn } = before;
    if (fqdn === null) return this.#absent();
    await this.#requireFree(before, fqdn);
    const { outcome, reason, found } = await this.#proof.check(challengeOf(before));
    const now = this.#ctx.clock.now().toISOString();
    if (outcome !== 'proven') {
      await this.#ctx.db.sql`update custom_domains set last_error = ${reason}, checked_at = case when status = 'verified' then checked_at
          else ${now}::timestamptz end
        where app_instance_id = ${before.app_instance_id} and txt_value = ${before.txt_value}`;
      const expected = [
        { type: before.challenge_type, name: challengeOf(before).challenge.name, value: before.txt_value },
        { type: 'CNAME', name: fqdn, value: before.hostname },
      ];
      throw this.#ctx.problem('domain_not_verified', {
        detail: `${reason} Set the records in "expected" and try again.`,
        extra: { expected, found },
      });
    }
    await this.#accept(before, fqdn, now, by);
    await this.#apps.publish(before);
    return domainOf(await this.#apps.row(where)) as CustomDomain;
  }

  async #accept(before: AppRow, fqdn: string, now: string, by: By): Promise<void> {
    try {
      await this.#ctx.db.tx(async tx => {
        await this.#apps.hold(tx, before);
        // By the value that was proven: the name may have been asked for anew in the meantime.
        const [domain] = await tx.sql<
          { status: string }[]
        >`select status from custom_domains where app_instance_id = ${before.app_instance_id} and txt_value = ${before.txt_value}
          for update`;
        if (!domain) return this.#absent();
        await tx.sql`select claim_hostname(${fqdn}, ${before.org_id}, 'custom', ${before.env_id}, ${before.app_instance_id})`;
        await tx.sql`update custom_domains set status = 'verified', verified_at = coalesce(case
          when status = 'verified' then verified_at end, ${now}::timestamptz),
          last_error = null, checked_at = ${now}, failing_since = null where app_instance_id = ${before.app_instance_id}`;
        if (domain.status !== 'verified') await this.#tell(tx, 'app.domain_verified', before, by, fqdn);
      });
    } catch (cause) {
      throw brokenConstraint(cause) === 'hostnames_pkey' ? taken(this.#ctx, '/fqdn', fqdn, cause) : cause;
    }
  }

  async #requireFree({ org_id: orgId, app_instance_id: appInstanceId }: AppRow, fqdn: string): Promise<void> {
    const [org] = await this.#ctx.db.sql<
      [{ org_id: string; org_domain: string }]
    >`select org_id, org_domain from orgs where org_id = ${orgId}`;
    await requireFqdn(this.#ctx, this.#ctx.db.sql, { org, appInstanceId, fqdn });
  }

  async #tell(tx: RegistryTx, action: string, row: AppRow, by: By, fqdn: string): Promise<void> {
    await tellDomainChange(tx, this.#audit, { action, row, by, fqdn });
  }

  #absent(): never {
    throw this.#ctx.problem('custom_domain_not_found', { detail: 'PUT one with its fqdn first.' });
  }
}

/** The name is nobody's again: giving it up, and losing it, leave no tombstone, because the next one must prove it in DNS anyway. */
export async function release(tx: RegistryTx, row: Pick<AppRow, 'app_instance_id'>): Promise<void> {
  await tx.sql`delete from hostnames where kind = 'custom' and app_instance_id = ${row.app_instance_id}`;
}

/** A new version of the instance, its event and its audit row. */
export async function tellDomainChange(
  tx: RegistryTx,
  audit: AuditTrail,
  {
    action,
    row,
    by,
    fqdn,
    reason,
  }: { action: string; row: Pick<AppRow, 'env_id' | 'app_instance_id' | 'app_id'>; by: By; fqdn: string; reason?: string | null },
): Promise<void> {
  await tx.sql`update app_instances set version = version + 1, updated_at = now() where app_instance_id = ${row.app_instance_id}`;
  await tx.emit('platform:sys:app:updated', row.env_id, { env_id: row.env_id, app_instance_id: row.app_instance_id, app_id: row.app_id });
  await audit.write(tx, {
    action,
    envId: row.env_id,
    resource: { type: 'app_instance', id: row.app_instance_id },
    details: { fqdn, ...(reason ? { reason } : {}) },
    ...by,
  });
}
