import { X509Certificate } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type RequestOf, SYSTEM } from '@platform/sdk';
import type { certificateAuthority } from '../contract/index.ts';
import type { CertificateMeta, CertificateStore } from './certificate-store.ts';
import type { Ctx } from './context.ts';

type Contract = typeof certificateAuthority;

/** Issued certificates: the list an operator sees, revocation, and the marks verifiers read (H-02). */
export class Certificates {
  readonly #ctx: Ctx;
  readonly #store: CertificateStore;

  constructor(ctx: Ctx, store: CertificateStore) {
    this.#ctx = ctx;
    this.#store = store;
  }

  async list({ query }: RequestOf<Contract, 'listCertificates'>) {
    const { items, next_cursor } = await this.#ctx.page(query, { list: 'certificates', order: { certificate_id: 'id' } }, async ({ after, limit }) =>
      this.#store.newest(limit, after?.[0] as string | undefined),
    );
    return { items: items.map(publicRow), next_cursor };
  }

  /** Refused by every verifier within seconds: the mark goes to the shared store before the answer. A repeat changes nothing. */
  async revoke({ params, body, caller }: RequestOf<Contract, 'revokeCertificate'>) {
    const meta = this.#store.get(params.certificate_id);
    if (!meta) throw this.#ctx.problem('certificate_not_found');
    if (meta.revoked) return publicRow(meta);
    const revoked: CertificateMeta = { ...meta, revoked: true, revoked_at: this.#ctx.clock.now().toISOString(), reason: String(body.reason ?? 0) };
    await this.#store.update(revoked);
    await this.#mark([revoked]);
    await this.#ctx.db.tx(async tx => {
      await tx.emit('platform:acme:certificate:revoked', SYSTEM.envId, { certificate_id: meta.certificate_id, serial: meta.serial, domain: meta.domain });
      await tx.audit({ action: 'acme.certificate.revoked', envId: SYSTEM.envId, caller, resource: { type: 'certificate', id: meta.certificate_id } });
    });
    return publicRow(revoked);
  }

  /** Marks are written again and again: a store that came back empty must not forgive a revoked certificate. */
  async publishRevocations(): Promise<void> {
    await this.#mark(this.#store.revoked(this.#ctx.clock.now()));
  }

  /** Takes over what the kernel signed before this service existed (day-one 2). */
  async adopt(keysDir: string): Promise<void> {
    const workloads = await readdir(keysDir, { withFileTypes: true }).catch(() => []);
    for (const entry of workloads.filter(candidate => candidate.isDirectory())) {
      for (const kind of ['client', 'database', 'listener']) {
        const chain = await readFile(join(keysDir, entry.name, `${kind}.crt`), 'utf8').catch(() => undefined);
        if (chain) await this.#adoptOne(chain, kind === 'listener' ? 'leaf' : 'client');
      }
    }
  }

  async #adoptOne(chain: string, kind: 'leaf' | 'client'): Promise<void> {
    const leaf = new X509Certificate(chain);
    const serial = leaf.serialNumber.toLowerCase();
    if (this.#store.has(serial)) return;
    await this.#store.add(
      {
        certificate_id: this.#ctx.platform.newId(),
        serial,
        domain: /CN=([^\n]+)/.exec(leaf.subject)?.[1] ?? '',
        kind,
        not_before: new Date(leaf.validFrom).toISOString(),
        not_after: new Date(leaf.validTo).toISOString(),
        thumbprint: Buffer.from(leaf.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url'),
        source: 'local',
        created_at: this.#ctx.clock.now().toISOString(),
        revoked: false,
        revoked_at: null,
        reason: null,
      },
      chain,
    );
  }

  async #mark(certificates: readonly CertificateMeta[]): Promise<void> {
    if (certificates.length === 0) return;
    const now = this.#ctx.clock.now().getTime();
    await this.#ctx.kv.pipeline(certificates.map(({ thumbprint, not_after }) => ['SET', `revoked:cert:${thumbprint}`, '1', 'EX', Math.max(1, Math.ceil((Date.parse(not_after) - now) / 1_000))]));
  }
}

function publicRow({ certificate_id, serial, domain, kind, not_after, revoked, revoked_at, reason, source }: CertificateMeta) {
  return { certificate_id, serial, domain, kind, not_after, revoked, revoked_at, reason, source };
}
