import { AuditListing } from '../audit/audit-listing.ts';
import { AuditRetention } from '../audit/audit-retention.ts';
import { AuditTrail } from '../audit/audit-trail.ts';
import { AuditAnchors } from '../audit/proof/audit-anchors.ts';
import { AuditChain } from '../audit/proof/audit-chain.ts';
import { AuditKeys } from '../audit/proof/audit-keys.ts';
import { AuditProofs } from '../audit/proof/audit-proofs.ts';
import { AuditVerification } from '../audit/proof/audit-verification.ts';
import { AuditWatch } from '../audit/proof/audit-watch.ts';
import { AuditWitness } from '../audit/proof/audit-witness.ts';
import type { Ctx } from '../context.ts';
import type { Access } from '../tenants/access.ts';

/**
 * A witness that is made beside a signed trail is of a new machine, or in the place of one that somebody took away: nobody but the operator
 * knows.
 */
async function sayWhatWitnessMissed(ctx: Ctx, witness: AuditWitness): Promise<void> {
  if (!witness.isNew) return;
  const [signed] = await ctx.db.sql<object[]>`select 1 from audit_anchors limit 1`;
  if (signed)
    ctx.log.error(
      { alert: 'sys.audit.witness_begun', file: witness.path },
      'the witness of the audit trail was made anew: it cannot tell what was put back before; restore its file unless this machine is new',
    );
}

/** The audit trail: what is written, how it is proven, read, watched and forgotten. */
export async function auditParts(ctx: Ctx, { access }: { access: Access }) {
  const keys = await AuditKeys.open(ctx);
  const witness = ctx.own(AuditWitness.open(ctx.files.directory('audit'), ctx.clock.now()));
  await sayWhatWitnessMissed(ctx, witness);
  const audit = new AuditTrail(ctx, new AuditChain(ctx));
  return {
    audit,
    auditAnchors: new AuditAnchors(ctx, keys),
    auditListing: new AuditListing(ctx, access),
    auditProofs: new AuditProofs(ctx, { keys, witness, audit }),
    auditRetention: new AuditRetention(ctx, keys),
    auditVerification: new AuditVerification(ctx, { keys, witness }),
    auditWatch: new AuditWatch(ctx, { keys, witness }),
  };
}
