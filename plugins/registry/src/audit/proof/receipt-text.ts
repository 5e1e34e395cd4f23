import type { AuditReceipt } from '../../../contract/schema/audit.ts';
import { signedText } from '../audit-statement.ts';

/** What is signed of one page of a receipt: all of it. */
export const receiptText = ({ at, key_id, after, heads, next_cursor }: Omit<AuditReceipt, 'signature'>): Buffer =>
  signedText(
    'receipt',
    at,
    key_id,
    after ?? '-',
    next_cursor ?? '-',
    ...heads.map(({ env_id, position, hash }) => `${env_id} ${position} ${hash}`),
  );
