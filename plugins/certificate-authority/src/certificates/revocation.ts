import { hash } from 'node:crypto';
import { type Caller, SYSTEM } from '@platform/sdk';
import type { Announcer } from '../announcer.ts';
import type { Ctx } from '../context.ts';
import type { Issuance } from '../issuance/issuance.ts';
import { Turns } from '../store/turns.ts';
import type { CertificateMeta, CertificateStore } from './certificate-store.ts';

const EVENT = 'platform:acme:certificate:revoked';

/** Takes certificates back: the mark that verifiers read goes to the shared store before the answer (H-02), the rest tells of it. */
export class Revocation {
  readonly #ctx: Ctx;
  readonly #parts: { readonly store: CertificateStore; readonly issuance: Issuance; readonly announcer: Announcer };
  readonly #turns = new Turns();

  constructor(ctx: Ctx, parts: { store: CertificateStore; issuance: Issuance; announcer: Announcer }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** @returns the certificate as it is now, and whether this changed it: a repeat does nothing. */
  revoke(
    id: string,
    reason: number,
    who: { readonly caller?: Caller; readonly by: string },
  ): Promise<{ meta: CertificateMeta; changed: boolean } | undefined> {
    return this.#turns.take(id, async () => {
      const { store, issuance, announcer } = this.#parts;
      const meta = store.get(id);
      if (!meta || meta.revoked) return meta && { meta, changed: false };
      const revoked: CertificateMeta = { ...meta, revoked: true, revoked_at: this.#ctx.clock.now().toISOString(), reason: String(reason) };
      await issuance.logged('revoked', revoked, who.by);
      await store.update(revoked);
      await this.#mark([revoked]);
      await this.publish();
      await this.#ctx.kv.call('PUBLISH', 'revoked:changed', revoked.thumbprint);
      const { certificate_id, serial, domain, thumbprint } = revoked;
      announcer.tell(EVENT, async tx => {
        await tx.emit(EVENT, SYSTEM.envId, { certificate_id, serial, domain });
        await tx.audit({
          action: 'acme.certificate.revoked',
          envId: SYSTEM.envId,
          caller: who.caller,
          resource: { type: 'certificate', id },
          details: { serial, domain, thumbprint, reason, by: who.by },
        });
      });
      return { meta: revoked, changed: true };
    });
  }

  /**
   * Marks and the list of them are written again and again: a store that came back empty must not forgive a revoked certificate. Processes
   * read the list when its stamp is another one.
   */
  async publish(): Promise<void> {
    const revoked = this.#parts.store.revoked(this.#ctx.clock.now());
    await this.#mark(revoked);
    const list = revoked
      .map(({ thumbprint }) => thumbprint)
      .sort()
      .join(' ');
    await this.#ctx.kv.pipeline([
      ['SET', 'revoked:certs', list],
      ['SET', 'revoked:certs:stamp', hash('sha256', list, 'base64url')],
    ]);
  }

  /** When and how often revoked certificates were shown to a service since, by thumbprint. */
  async uses(certificates: readonly CertificateMeta[]): Promise<ReadonlyMap<string, { readonly count: number; readonly last: string }>> {
    const revoked = certificates.filter(meta => meta.revoked);
    if (revoked.length === 0) return new Map();
    const found = await this.#ctx.kv.pipeline(revoked.map(({ thumbprint }) => ['HMGET', `revoked:used:${thumbprint}`, 'count', 'last']));
    return new Map(
      revoked.flatMap(({ thumbprint }, index) => {
        const [count, last] = (found[index] as (string | null)[] | undefined) ?? [];
        return count && last ? [[thumbprint, { count: Number(count), last }] as const] : [];
      }),
    );
  }

  async #mark(certificates: readonly CertificateMeta[]): Promise<void> {
    if (certificates.length === 0) return;
    const now = this.#ctx.clock.now().getTime();
    await this.#ctx.kv.pipeline(
      certificates.map(({ thumbprint, not_after }) => [
        'SET',
        `revoked:cert:${thumbprint}`,
        '1',
        'EX',
        Math.max(1, Math.ceil((Date.parse(not_after) - now) / 1_000)),
      ]),
    );
  }
}
