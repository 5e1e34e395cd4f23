import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import type { IssuedCertificate, LeafOrder } from '@platform/sdk';
import type { CertificateMeta, CertificateStore } from '../certificates/certificate-store.ts';
import type { Ctx } from '../context.ts';
import type { IssuanceLog } from '../record/issuance-log.ts';
import { MintQueue, MintQueueFull, SHED_RETRY_AFTER_S } from './mint-queue.ts';

/** What is kept of a new certificate beside itself. */
export interface Keep {
  readonly id?: string;
  readonly domain: string;
  readonly names: readonly string[];
  readonly kind: CertificateMeta['kind'];
  readonly source?: CertificateMeta['source'];
  readonly accountId?: string;
  /** Of an upstream certificate alone: the platform's own key for it. */
  readonly key?: string;
  /** Who it was made for, in the log. */
  readonly by: string;
}

/** The one way to a certificate: a place in the queue, a signature, a line in the log, a file; and only then an answer. */
export class Issuance {
  readonly #ctx: Ctx;
  readonly #store: CertificateStore;
  readonly #log: IssuanceLog;
  readonly #queue = new MintQueue();
  readonly #issuers: Readonly<Record<'pq' | 'classical', string>>;

  constructor(ctx: Ctx, store: CertificateStore, log: IssuanceLog) {
    this.#ctx = ctx;
    this.#store = store;
    this.#log = log;
    const { pq, classical } = ctx.authority.anchors;
    this.#issuers = { pq: keyIdOf(pq.intermediate, 'subject'), classical: keyIdOf(classical.intermediate, 'subject') };
  }

  get figures() {
    return this.#queue.figures;
  }

  /** Work of the mint budget. Throws `mint_queue_full` when there is no place (CA-036, CA-038). */
  async admitted<T>(path: string, work: () => Promise<T>): Promise<T> {
    try {
      return await this.#queue.run(work);
    } catch (error) {
      if (!(error instanceof MintQueueFull)) throw error;
      this.#ctx.log.warn({ event: 'mint_shed', queued: error.queued, in_flight: error.inFlight, path }, 'mint refused');
      throw this.#ctx.problem('mint_queue_full', { headers: { 'retry-after': String(SHED_RETRY_AFTER_S) } });
    }
  }

  /** Signs and keeps. Inside {@link admitted}. A failure is `issuance_failed` with its cause in the log alone (CA-093). */
  async issue(order: LeafOrder, keep: Keep): Promise<{ issued: IssuedCertificate; meta: CertificateMeta }> {
    try {
      const issued = await this.#ctx.authority.issue(order);
      return { issued, meta: await this.keep(issued, keep, this.#issuers[order.hierarchy]) };
    } catch (error) {
      throw this.#ctx.problem('issuance_failed', { cause: error });
    }
  }

  async keep(
    issued: Omit<IssuedCertificate, 'key' | 'certificate'>,
    { id, domain, names, kind, source = 'local', accountId, key, by }: Keep,
    issuerKeyId = keyIdOf(issued.chain, 'authority'),
  ): Promise<CertificateMeta> {
    const meta: CertificateMeta = {
      certificate_id: id ?? this.#ctx.platform.newId(),
      serial: issued.serial,
      domain,
      names,
      kind,
      not_before: issued.notBefore.toISOString(),
      not_after: issued.notAfter.toISOString(),
      thumbprint: issued.thumbprint,
      source,
      created_at: this.#ctx.clock.now().toISOString(),
      ...(accountId === undefined ? {} : { account_id: accountId }),
      ...(issuerKeyId === '' ? {} : { issuer_key_id: issuerKeyId }),
      revoked: false,
      revoked_at: null,
      reason: null,
    };
    await this.logged('issued', meta, by);
    await this.#store.add(meta, issued.chain, key);
    return meta;
  }

  logged(
    action: 'issued' | 'adopted' | 'revoked',
    { certificate_id, serial, thumbprint, domain, kind, source, not_after }: CertificateMeta,
    by: string,
  ): Promise<void> {
    return this.#log.add({ action, certificate_id, serial, thumbprint, domain, kind, source, not_after, by });
  }
}

/** Key identifier of the first certificate of a chain, its own or its issuer's; empty when it has none. */
export function keyIdOf(chain: string, whose: 'subject' | 'authority'): string {
  const [first] = x509.PemConverter.decode(chain);
  if (!first) return '';
  const { extensions } = new x509.X509Certificate(first);
  if (whose === 'subject') return extensions.find(extension => extension instanceof x509.SubjectKeyIdentifierExtension)?.keyId ?? '';
  return extensions.find(extension => extension instanceof x509.AuthorityKeyIdentifierExtension)?.keyId ?? '';
}
