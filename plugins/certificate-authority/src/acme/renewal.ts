import type { CertificateMeta, CertificateStore } from '../certificates/certificate-store.ts';

const CERTID = /^([A-Za-z0-9_-]{1,100})\.([A-Za-z0-9_-]{1,50})$/;

/** The certificate that a client names as RFC 9773, 4.1 says: its issuer's key identifier and its serial number. */
export function renewalCertificate(store: CertificateStore, certid: string): CertificateMeta | undefined {
  const [, issuer, serial] = CERTID.exec(certid) ?? [];
  if (issuer === undefined || serial === undefined) return undefined;
  const hex = (text: string) => Buffer.from(text, 'base64url').toString('hex');
  const meta = store.bySerial(hex(serial)) ?? store.bySerial(hex(serial).replace(/^00/, ''));
  return meta?.issuer_key_id !== undefined && meta.issuer_key_id.toLowerCase() === hex(issuer) ? meta : undefined;
}

/** When to renew: in the day around two thirds of its life, at once when it was revoked (G-ACME-03). */
export function suggestedWindow({ not_before, not_after, revoked_at }: CertificateMeta, now: Date): { start: string; end: string } {
  const [from, until] = [Date.parse(not_before), Date.parse(not_after)];
  const window = (start: number, length: number) => ({ start: new Date(start).toISOString(), end: new Date(start + length).toISOString() });
  if (revoked_at !== null) return window(Math.min(Date.parse(revoked_at), now.getTime()) - 120_000, 60_000);
  return window(from + ((until - from) * 2) / 3, Math.min(86_400_000, (until - from) / 24));
}
