import { X509Certificate } from 'node:crypto';
import type { CertificateStore } from '../certificates/certificate-store.ts';
import type { Revocation } from '../certificates/revocation.ts';
import type { Ctx } from '../context.ts';
import type { AcmeRequest, Answer, SignedRequest } from './acme-door.ts';
import { renewalCertificate, suggestedWindow } from './renewal.ts';
import { BadJws, readBytes, readKey } from './signed-request.ts';

const ASK_AGAIN_S = 21_600;
/** RFC 5280, 5.3.1: seven stands for nothing. */
const UNUSED_REASON = 7;

/** Certificates by the protocol: download, revocation, renewal information. */
export class CertificateHandlers {
  readonly #ctx: Ctx;
  readonly #store: CertificateStore;
  readonly #revocation: Revocation;

  constructor(ctx: Ctx, store: CertificateStore, revocation: Revocation) {
    this.#ctx = ctx;
    this.#store = store;
    this.#revocation = revocation;
  }

  /** Leaf and intermediate, the root left out. Never a key. */
  async download({ params }: AcmeRequest): Promise<Answer> {
    const chain = await this.#store.chain(params['id'] as string);
    if (chain === undefined) throw this.#ctx.problem('certificate_not_found');
    return { headers: { 'content-type': 'application/pem-certificate-chain' }, body: chain };
  }

  /** Signed by the account it was issued to, or by its own key (H-01). */
  async revoke({ payload = {}, account, key }: SignedRequest): Promise<Answer> {
    const der = readBytes(payload['certificate'], 'certificate');
    const reason = payload['reason'] ?? 0;
    if (!Number.isInteger(reason) || (reason as number) < 0 || (reason as number) > 10 || reason === UNUSED_REASON)
      throw this.#ctx.problem('bad_revocation_reason', { detail: 'reason is a whole number from 0 to 10, except 7.' });
    const certificate = readCertificate(der);
    const meta = this.#store.byThumbprint(Buffer.from(certificate.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url'));
    if (!meta) throw this.#ctx.problem('certificate_not_found', { detail: 'This authority has not issued such a certificate.' });
    if (account ? meta.account_id !== account.account_id : !(await isKeyOf(certificate, key)))
      throw new BadJws('not_authorized', 'A certificate is revoked by the account it was issued to, or by its own key.');
    const done = await this.#revocation.revoke(meta.certificate_id, reason as number, {
      by: account ? `account:${account.account_id}` : 'certificate key',
    });
    if (!done?.changed) throw this.#ctx.problem('already_revoked');
    return { status: 200 };
  }

  async renewalInfo({ params }: AcmeRequest): Promise<Answer> {
    const meta = renewalCertificate(this.#store, params['certid'] as string);
    if (!meta) throw this.#ctx.problem('certificate_not_found');
    return { headers: { 'retry-after': String(ASK_AGAIN_S) }, body: { suggestedWindow: suggestedWindow(meta, this.#ctx.clock.now()) } };
  }
}

function readCertificate(der: Buffer): X509Certificate {
  try {
    return new X509Certificate(der);
  } catch {
    throw new BadJws('malformed_request', 'certificate is no certificate in DER.');
  }
}

async function isKeyOf({ publicKey }: X509Certificate, key: SignedRequest['key']): Promise<boolean> {
  if (!key) return false;
  try {
    return (await readKey(publicKey.export({ format: 'jwk' }))).thumbprint === key.thumbprint;
  } catch {
    return false;
  }
}
