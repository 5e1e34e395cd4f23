import type { auditRoutes } from '../../contract/routes/audit-routes.ts';
import type { Handlers } from '../context.ts';
import type { AuditListing } from './audit-listing.ts';
import type { AuditProofs } from './proof/audit-proofs.ts';
import type { AuditTrail } from './audit-trail.ts';
import type { AuditVerification } from './proof/audit-verification.ts';

interface Parts {
  readonly audit: AuditTrail;
  readonly auditListing: AuditListing;
  readonly auditProofs: AuditProofs;
  readonly auditVerification: AuditVerification;
}

/** Routes of the audit trail to who answers them. */
export const auditHandlers = ({ audit, auditListing, auditProofs, auditVerification }: Parts): Handlers<keyof typeof auditRoutes> => ({
  listAudit: request => auditListing.list(request),
  recordAudit: request => audit.record(request),
  recordAudits: request => audit.recordMany(request),
  verifyAudit: request => auditVerification.step(request),
  listAuditChains: request => auditVerification.chains(request),
  auditReceipt: request => auditProofs.receipt(request),
  auditKey: () => auditProofs.key(),
  auditKeyRows: () => auditProofs.list(),
  rotateAuditKey: request => auditProofs.rotate(request),
});
