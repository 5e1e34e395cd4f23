import type { Caller } from '@platform/sdk';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Ctx } from '../context.ts';
import type { AppInstances } from './app-instances.ts';
import { type AppRow, challengeOf, selectApps } from './app-row.ts';
import { release, tellDomainChange } from './custom-domains.ts';
import type { DomainProof } from './domain-proof.ts';

const DAY_MS = 86_400_000;
const GRACE_MS = 3 * DAY_MS;
const PER_RUN = 500;
const AT_ONCE = 8;

/** The registry itself, as the audit trail names it. */
const SELF: Caller = {
  kind: 'machine',
  userId: undefined,
  service: 'sys',
  subject: 'sys',
  clientId: 'sys',
  envId: undefined,
  authEnvId: undefined,
  thumbprint: undefined,
  vertical: 'platform',
  platformAdmin: false,
  bound: true,
  email: undefined,
  emailVerified: false,
  sessionId: undefined,
};

/** Looks again, once a day each, whether verified domains still lead here. One that has not for three days fails, and says why (H-32). */
export class DomainRecheck {
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

  async run(signal: AbortSignal): Promise<void> {
    const { sql } = this.#ctx.db;
    const due = new Date(this.#ctx.clock.now().getTime() - DAY_MS).toISOString();
    const rows = await selectApps(
      sql,
      sql`where d.status = 'verified' and d.checked_at <= ${due} and a.status = 'active' and e.status <> 'archived' order by d.checked_at
        limit ${PER_RUN}`,
    );
    const queue = rows.values();
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (const row of queue) {
          if (signal.aborted) return;
          await this.#look(row).catch(error =>
            this.#ctx.log.warn({ err: error, app_instance_id: row.app_instance_id }, 'custom domain not checked again; the next run tries'),
          );
        }
      }),
    );
  }

  async #look(row: AppRow): Promise<void> {
    const fqdn = row.fqdn as string;
    const { outcome, reason } = await this.#proof.check(challengeOf(row));
    const now = this.#ctx.clock.now();
    const lost = new Date(now.getTime() - GRACE_MS).toISOString();
    const failed = await this.#ctx.db.tx(async tx => {
      // Silence of name servers neither starts the grace nor ends it.
      const [domain] = await tx.sql<{ failed: boolean }[]>`
        update custom_domains set checked_at = ${now}, last_error = ${reason},
          failing_since = case ${outcome} when 'proven' then null when 'refuted' then coalesce(failing_since, ${now}::timestamptz)
            else failing_since end,
          status = case when ${outcome} = 'refuted' and failing_since <= ${lost}::timestamptz then 'failed' else status end
        where app_instance_id = ${row.app_instance_id} and txt_value = ${row.txt_value} and status = 'verified'
          returning status = 'failed' as failed`;
      if (!domain?.failed) return false;
      await release(tx, row);
      await tellDomainChange(tx, this.#audit, {
        action: 'app.domain_failed',
        row,
        by: { caller: SELF, correlationId: `sys-${this.#ctx.platform.newId()}` },
        fqdn,
        reason,
      });
      return true;
    });
    if (!failed) return;
    this.#ctx.log.warn({ app_instance_id: row.app_instance_id, fqdn }, 'custom domain no longer verifies and stops resolving');
    await this.#apps.publish(row);
  }
}
