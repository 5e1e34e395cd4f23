import type { auditRoutes } from '../../contract/routes/audit-routes.ts';
import type { Handlers } from '../context.ts';
import type { AuditListing } from './audit-listing.ts';
import type { AuditTrail } from './audit-trail.ts';
import type { AuditVerification } from './audit-verification.ts';

interface Parts {
  readonly audit: AuditTrail;
  readonly auditListing: AuditListing;
  readonly auditVerification: AuditVerification;
}

/** Routes of the audit trail to who answers them. */
export const auditHandlers = ({ audit, auditListing, auditVerification }: Parts): Handlers<keyof typeof auditRoutes> => ({
  listAudit: request => auditListing.list(request),
  recordAudit: request => audit.record(request),
  recordAudits: request => audit.recordMany(request),
  verifyAudit: request => auditVerification.step(request),
  listAuditChains: request => auditVerification.chains(request),
  auditKey: () => auditVerification.key(),
});
