import { randomBytes } from 'node:crypto';
import { brokenConstraint, type Caller, type RequestOf, type Sql, SYSTEM } from '@platform/sdk';
import type { OrgDomain, Org } from '../../contract/schema/tenant.ts';
import { challengeName } from '../apps/app-row.ts';
import type { DomainProof } from '../apps/domain-proof.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx } from '../context.ts';
import type { DomainChanges } from '../domain-changes.ts';
import type { Access } from './access.ts';
import { within } from './host-ownership.ts';

type Row = Omit<OrgDomain, 'txt_name'>;
interface Parts {
  readonly access: Access;
  readonly audit: AuditTrail;
  readonly changes: DomainChanges;
  readonly proof: DomainProof;
}
interface By {
  readonly caller: Caller;
  readonly correlationId: string;
}

/**
 * Domains of organizations outside the platform's own. Life: pending → verified. Asking for one reserves nothing: it routes when its
 * organization has shown its value in DNS, and of two that ask the first to show it has it (F-34, D-03).
 */
export class DomainProofs {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async list(caller: Caller, orgId: string): Promise<{ items: OrgDomain[]; next_cursor: null }> {
    await this.#parts.access.org(caller, orgId);
    const rows = await select(this.#ctx.db.sql, this.#ctx.db.sql`where org_id = ${orgId} order by domain`);
    return { items: rows.map(shown), next_cursor: null };
  }

  /** The domains of the organization that an environment belongs to. */
  async ofEnv({ caller, env }: RequestOf<Contract, 'domainRows'>): Promise<{ items: OrgDomain[]; next_cursor: null }> {
    return this.list(caller, (await this.#parts.access.env(caller, env)).org_id);
  }

  async verifyOfEnv({ params, caller, correlationId, env }: RequestOf<Contract, 'verifyDomainRow'>): Promise<OrgDomain> {
    return this.verify((await this.#parts.access.env(caller, env)).org_id, params.domain, { caller, correlationId });
  }

  async verify(orgId: string, domain: string, { caller, correlationId }: By): Promise<OrgDomain> {
    const org = await this.#parts.access.org(caller, orgId, 'admin');
    const row = await this.#row(org, domain);
    if (row.status === 'verified') return shown(row);
    const { outcome, reason, found } = await this.#parts.proof.check({ fqdn: domain, value: row.txt_value });
    if (outcome !== 'proven') {
      await this.#ctx.db
        .sql`update domain_proofs set last_error = ${reason} where org_id = ${orgId} and domain = ${domain} and status = 'pending'`;
      const expected = [{ type: 'TXT', name: challengeName(domain), value: row.txt_value }];
      throw this.#ctx.problem('domain_not_verified', {
        detail: `${reason} Set the record in "expected" and try again.`,
        extra: { expected, found },
      });
    }
    await this.#ctx.db
      .tx(async tx => {
        await tx.sql`update domain_proofs set status = 'verified', verified_at = ${this.#ctx.clock.now().toISOString()}, last_error = null
          where org_id = ${orgId} and domain = ${domain}`;
        await this.#parts.audit.write(tx, {
          action: 'org.domain_verified',
          envId: SYSTEM.envId,
          caller,
          correlationId,
          resource: { type: 'org', id: orgId },
          details: { domain },
        });
      })
      .catch(cause => {
        if (brokenConstraint(cause) === 'domain_proofs_owner')
          throw this.#ctx.problem('hostname_taken', {
            cause,
            detail: `Another organization has shown that "${domain}" is its own. It must give it up first.`,
          });
        throw cause;
      });
    await this.#parts.changes.publish({ scope: 'org', org_id: orgId });
    return shown(await this.#row(org, domain));
  }

  async #row({ org_id: orgId }: Pick<Org, 'org_id'>, domain: string): Promise<Row> {
    const { sql } = this.#ctx.db;
    const [row] = await select(sql, sql`where org_id = ${orgId} and domain = ${domain}`);
    if (!row)
      throw this.#ctx.problem('custom_domain_not_found', {
        detail: 'Make it the domain of the organization, or the sign-in domain of an environment, first.',
      });
    return row;
  }
}

/** Part of the change that gives an organization or environment a domain outside the platform's: the value that DNS must show. */
export async function needProof(ctx: Ctx, sql: Sql, orgId: string, domain: string): Promise<void> {
  if (within(domain, ctx.platform.domain)) return;
  const [above] = await sql<
    object[]
  >`select 1 from domain_proofs where org_id = ${orgId} and status = 'verified' and right(${domain}, length(domain) + 1) = '.' || domain`;
  if (above) return;
  await sql`insert into domain_proofs (org_id, domain, txt_value) values (${orgId}, ${domain}, ${randomBytes(32).toString('base64url')})
    on conflict do nothing`;
}

const select = (sql: Sql, where: unknown): Promise<Row[]> =>
  sql<Row[]>`select domain, txt_value, status, verified_at, last_error from domain_proofs ${where}`;

const shown = (row: Row): OrgDomain => ({ ...row, txt_name: challengeName(row.domain) });
