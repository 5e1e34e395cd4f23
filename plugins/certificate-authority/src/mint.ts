import { type IssuedCertificate, type RequestOf, SYSTEM } from '@platform/sdk';
import type { certificateAuthority } from '../contract/index.ts';
import type { CertificateMeta, CertificateStore } from './certificate-store.ts';
import type { Ctx } from './context.ts';
import { ENROLLMENT_HEADER, type Enrollment } from './enrollment.ts';
import { MintQueue, MintQueueFull, SHED_RETRY_AFTER_S } from './mint-queue.ts';
import { isLocalName, normalName, parseSuffixes } from './name-classification.ts';

const SERVICE_NAME = /^[a-z][a-z0-9-]{0,58}[a-z0-9]$/;
const DAYS = { least: 1, usual: 365, most: 3_650 };

type Contract = typeof certificateAuthority;
type Channel = 'enrollment' | 'self' | 'operator';

/** Makes workload and listener certificates for whoever proves to be entitled: enrollment secret, own identity, or operator scope. */
export class Mint {
  readonly #ctx: Ctx;
  readonly #store: CertificateStore;
  readonly #enrollment: Enrollment;
  readonly #queue = new MintQueue();
  readonly #suffixes: readonly string[];

  constructor(ctx: Ctx, store: CertificateStore, enrollment: Enrollment) {
    this.#ctx = ctx;
    this.#store = store;
    this.#enrollment = enrollment;
    this.#suffixes = [...parseSuffixes(ctx.config.localDomains), `ops.sys.${ctx.platform.domain}`];
  }

  /** `POST /v1/client-cert` (G-ACME-07). With a CSR no key leaves the requester's machine (H-02). */
  async clientCertificate(request: RequestOf<Contract, 'issueClientCertificate'>) {
    const { service_name: name, validity_days: asked, csr } = request.body;
    if (!SERVICE_NAME.test(name)) throw this.#ctx.problem('invalid_service_name', { detail: 'Use 2 to 60 characters of a-z, 0-9 and -, starting with a letter.' });
    const channel = await this.#admit(request, name);
    const days = Math.min(DAYS.most, Math.max(DAYS.least, asked ?? DAYS.usual));
    const read = csr === undefined ? undefined : await this.#readCsr(csr);
    // A classical key that asks for `svc.{name}` is a database login; its CN is what pg_ident maps (day-one 3).
    const database = read?.hierarchy === 'classical' && read.commonName === `svc.${name}`;
    const cn = database ? `svc.${name}` : `m2m-${name}`;
    const issued = await this.#issue(() =>
      this.#ctx.authority.issue({ hierarchy: read?.hierarchy ?? 'pq', commonName: cn, names: [`uri:urn:platform:workload:${name}`], usages: ['client'], days, ...(csr === undefined ? {} : { csr }) }),
    );
    const meta = await this.#keep(issued, cn, 'client', request.correlationId);
    this.#ctx.log.info({ channel, service_name: name, serial: meta.serial, peer: request.ip }, 'client certificate minted');
    await this.#announce(meta, name);
    return {
      certificate_id: meta.certificate_id,
      serial: meta.serial,
      cn,
      not_before: meta.not_before,
      not_after: meta.not_after,
      thumbprint: meta.thumbprint,
      pem: issued.chain + (issued.key ?? ''),
    };
  }

  /** `POST /v1/certificates/fetch` (G-ACME-08): a server certificate for names the caller may answer on. */
  async listenerCertificate(request: RequestOf<Contract, 'fetchCertificate'>) {
    const { domain, domains, csr } = request.body;
    const names = [...new Set([domain, ...(domains ?? [])].map(normalName))];
    const secret = request.headers[ENROLLMENT_HEADER];
    const workload = request.peer?.workload ?? (secret ? await this.#enrolledFor(names, secret, request.ip) : undefined);
    if (!workload) throw this.#ctx.problem(secret ? 'enrollment_rejected' : 'credential_required');
    for (const name of names) {
      if (!isLocalName(name, this.#suffixes)) throw this.#ctx.problem('name_not_local', { detail: `${name} is not a name this authority signs.` });
      if (!this.#owns(workload, name)) throw this.#ctx.problem('name_not_owned', { detail: `${name} is not a name of ${workload}.` });
    }
    const { hierarchy } = await this.#readCsr(csr);
    const issued = await this.#issue(() =>
      this.#ctx.authority.issue({ hierarchy, commonName: names[0] as string, names: names.map(name => `dns:${name}`), usages: ['server'], days: this.#ctx.config.leafDays, csr }),
    );
    const meta = await this.#keep(issued, names[0] as string, 'leaf', request.correlationId);
    return { certificate_id: meta.certificate_id, chain_pem: issued.chain, not_after: meta.not_after, source: 'local' as const };
  }

  async #admit(request: RequestOf<Contract, 'issueClientCertificate'>, name: string): Promise<Channel> {
    const secret = request.headers[ENROLLMENT_HEADER];
    const { authorization } = request.headers;
    if (secret !== undefined) {
      if (await this.#enrollment.admits(secret, name, request.ip)) return 'enrollment';
      if (authorization === undefined) throw this.#ctx.problem('enrollment_rejected');
    }
    const shown = await this.#ctx.auth.verify(request);
    if (!shown) throw this.#ctx.problem('credential_required');
    if (await shown.permits('acme:clientcert:issue')) return 'operator';
    const { caller } = shown;
    // Of a delegated token the subject is the delegator, the caller a person: she is not that workload.
    if (caller.kind === 'machine' && caller.subject === name) return 'self';
    throw this.#ctx.problem('subject_mismatch', { detail: `The identity is ${caller.subject}, the certificate is for ${name}.` });
  }

  async #enrolledFor(names: readonly string[], secret: string, ip: string): Promise<string | undefined> {
    const label = this.#platformLabel(names[0] as string);
    return label && (await this.#enrollment.admits(secret, label, ip)) ? label : undefined;
  }

  /** Platform names belong to the workload of their label (H-01); the ingress answers for every browser-facing name. */
  #owns(workload: string, name: string): boolean {
    if (workload === 'proxy') return true;
    const label = this.#platformLabel(name);
    if (label === undefined) return false;
    const manifest = this.#ctx.catalog.manifests().find(candidate => (candidate as { id: string }).id === workload) as { hosts?: string[] } | undefined;
    return label === workload || (manifest?.hosts?.includes(label) ?? false);
  }

  #platformLabel(name: string): string | undefined {
    const suffix = `.ops.sys.${this.#ctx.platform.domain}`;
    const label = name.endsWith(suffix) ? name.slice(0, -suffix.length) : undefined;
    return label !== undefined && /^[a-z0-9-]+$/.test(label) ? label : undefined;
  }

  async #readCsr(csr: string) {
    const read = await this.#ctx.authority.readCsr(csr);
    if ('refused' in read) throw this.#ctx.problem('bad_csr', { detail: read.refused });
    return read;
  }

  async #issue(mint: () => Promise<IssuedCertificate>): Promise<IssuedCertificate> {
    try {
      return await this.#queue.run(mint);
    } catch (error) {
      if (!(error instanceof MintQueueFull)) throw error;
      this.#ctx.log.warn({ event: 'mint_shed', queued: error.queued, in_flight: error.inFlight }, 'mint refused');
      throw this.#ctx.problem('mint_queue_full', { headers: { 'retry-after': String(SHED_RETRY_AFTER_S) } });
    }
  }

  async #keep(issued: IssuedCertificate, domain: string, kind: CertificateMeta['kind'], _correlationId: string): Promise<CertificateMeta> {
    const meta: CertificateMeta = {
      certificate_id: this.#ctx.platform.newId(),
      serial: issued.serial,
      domain,
      kind,
      not_before: issued.notBefore.toISOString(),
      not_after: issued.notAfter.toISOString(),
      thumbprint: issued.thumbprint,
      source: 'local',
      created_at: this.#ctx.clock.now().toISOString(),
      revoked: false,
      revoked_at: null,
      reason: null,
    };
    await this.#store.add(meta, issued.chain);
    return meta;
  }

  /** An event that cannot be queued is dropped with a warning: the certificate is what was asked for (C26). */
  async #announce(meta: CertificateMeta, name: string): Promise<void> {
    try {
      await this.#ctx.db.tx(tx =>
        tx.emit('platform:acme:clientcert:issued', SYSTEM.envId, { certificate_id: meta.certificate_id, service_name: name, serial: meta.serial, not_after: meta.not_after }),
      );
    } catch (error) {
      this.#ctx.log.warn({ err: error, serial: meta.serial }, 'event dropped');
    }
  }
}
