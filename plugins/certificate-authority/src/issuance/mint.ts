import { type RequestOf, reply, SYSTEM } from '@platform/sdk';
import type { certificateAuthority } from '../../contract/index.ts';
import type { Announcer } from '../announcer.ts';
import type { CertificateMeta } from '../certificates/certificate-store.ts';
import type { Ctx } from '../context.ts';
import { ENROLLMENT_HEADER, type Enrollment } from './enrollment.ts';
import type { Issuance } from './issuance.ts';
import { classify } from './identifiers.ts';
import { isLocalName, normalName } from './name-classification.ts';
import type { ListenerOrders } from '../upstream/listener-orders.ts';
import type { PlatformNames } from './platform-names.ts';

const SERVICE_NAME = /^[a-z][a-z0-9-]{0,58}[a-z0-9]$/;
/** As long as the secrets of a start live. */
const START_MS = 120_000;
const DAYS = { least: 1, usual: 365, most: 3_650 };

type Contract = typeof certificateAuthority;
type Channel = 'enrollment' | 'self' | 'operator';

export interface MintParts {
  readonly issuance: Issuance;
  readonly enrollment: Enrollment;
  readonly announcer: Announcer;
  readonly names: PlatformNames;
  readonly suffixes: readonly string[];
  /** Where external names are ordered for listeners; nowhere without an upstream authority. */
  readonly upstream?: ListenerOrders | undefined;
}

/** Makes workload and listener certificates for a caller that proves its right: enrollment secret, own identity, or operator scope. */
export class Mint {
  readonly #ctx: Ctx;
  readonly #parts: MintParts;
  readonly #suffixes: readonly string[];
  readonly #since: number;

  constructor(ctx: Ctx, parts: MintParts) {
    this.#ctx = ctx;
    this.#parts = parts;
    this.#since = ctx.clock.now().getTime();
    this.#suffixes = [...parts.suffixes, ctx.platform.zone];
  }

  /** `POST /v1/client-cert` (G-ACME-07). With a CSR no key leaves the requester's machine (H-02). */
  async clientCertificate(request: RequestOf<Contract, 'issueClientCertificate'>) {
    const { service_name: name, validity_days: asked, csr } = request.body;
    if (!SERVICE_NAME.test(name))
      throw this.#ctx.problem('invalid_service_name', { detail: 'Use 2 to 60 characters of a-z, 0-9 and -, starting with a letter.' });
    const channel = await this.#admit(request, name);
    const days = Math.min(DAYS.most, Math.max(DAYS.least, asked ?? DAYS.usual));
    const read = csr === undefined ? undefined : await this.#readCsr(csr);
    // A classical key that asks for `svc.{name}` is a database login; its CN is what pg_ident maps (day-one 3).
    const database = read?.hierarchy === 'classical' && read.commonName === `svc.${name}`;
    if (database && channel === 'enrollment')
      throw this.#ctx.problem('enrollment_rejected', {
        detail: 'The secret admits to a client certificate alone. Ask for this one with that.',
      });
    const cn = database ? `svc.${name}` : `m2m-${name}`;
    const names = [`uri:urn:platform:workload:${name}`];
    const { issued, meta } = await this.#parts.issuance.admitted('/v1/client-cert', () =>
      this.#parts.issuance.issue(
        { hierarchy: read?.hierarchy ?? 'pq', commonName: cn, names, usages: ['client'], days, ...(csr === undefined ? {} : { csr }) },
        { domain: cn, names, kind: 'client', by: `${channel}:${name}` },
      ),
    );
    this.#ctx.log[channel === 'enrollment' && !this.#isStarting() ? 'warn' : 'info'](
      { channel, service_name: name, serial: meta.serial, peer: request.ip },
      'client certificate minted',
    );
    this.#announce(meta, name);
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
    // A certificate that was revoked is nobody's word (H-02).
    if (request.peer) await this.#ctx.auth.verify({ headers: {}, peer: request.peer });
    const workload = request.peer?.workload;
    // The enrollment secret makes a client certificate and nothing else (CA-043); that one asks here.
    if (!workload) throw this.#ctx.problem('credential_required');
    const external = names.length === 1 && !isLocalName(names[0] as string, this.#suffixes) ? names[0] : undefined;
    if (external !== undefined && this.#parts.upstream) return this.#upstreamCertificate(workload, external, this.#parts.upstream);
    for (const name of names) {
      if (!isLocalName(name, this.#suffixes))
        throw this.#ctx.problem('name_not_local', { detail: `${name} is not a name this authority signs.` });
      if (!this.#parts.names.owns(workload, name))
        throw this.#ctx.problem('name_not_owned', { detail: `${name} is not a name of ${workload}.` });
    }
    if (csr === undefined)
      throw this.#ctx.problem('bad_csr', { detail: 'For a name that is signed here, send a request: its key stays with you.' });
    const { hierarchy } = await this.#readCsr(csr);
    const [first = ''] = names;
    const dns = names.map(name => `dns:${name}`);
    const { issued, meta } = await this.#parts.issuance.admitted('/v1/certificates/fetch', () =>
      this.#parts.issuance.issue(
        { hierarchy, commonName: first, names: dns, usages: ['server'], days: this.#ctx.config.leafDays, csr },
        { domain: first, names: dns, kind: 'leaf', by: `listener:${workload}` },
      ),
    );
    return { certificate_id: meta.certificate_id, chain_pem: issued.chain, not_after: meta.not_after, source: 'local' as const };
  }

  /** With its key, which is the platform's own (C22): for the listener that answers on such names alone. */
  async #upstreamCertificate(workload: string, name: string, upstream: ListenerOrders) {
    if (!this.#parts.names.owns(workload, name))
      throw this.#ctx.problem('name_not_owned', { detail: `${name} is not a name of ${workload}.` });
    const read = classify([{ type: 'dns', value: name }], this.#suffixes);
    const found = 'refused' in read ? undefined : await upstream.of(name);
    if (found === 'running') return reply(undefined as never, { status: 202, headers: { 'retry-after': '1' } });
    if (!found) throw this.#ctx.problem('name_not_local', { detail: `No certificate for ${name} can be had.` });
    return { ...found, source: 'upstream' as const };
  }

  async #admit(request: RequestOf<Contract, 'issueClientCertificate'>, name: string): Promise<Channel> {
    const secret = request.headers[ENROLLMENT_HEADER];
    const { authorization } = request.headers;
    if (secret !== undefined) {
      if (await this.#parts.enrollment.admits(secret, name, request.ip)) return 'enrollment';
      if (authorization === undefined) throw this.#ctx.problem('enrollment_rejected');
    }
    const shown = await this.#ctx.auth.verify(request);
    if (!shown) throw this.#ctx.problem('credential_required');
    const { caller } = shown;
    // Of a delegated token the subject is the delegator, the caller a person: she is not that workload.
    if (caller.kind === 'machine' && caller.subject === name) return 'self';
    if (await shown.permits('acme:clientcert:issue')) return 'operator';
    throw this.#ctx.problem('subject_mismatch', { detail: `The identity is ${caller.subject}, the certificate is for ${name}.` });
  }

  async #readCsr(csr: string) {
    const read = await this.#ctx.authority.readCsr(csr);
    if ('refused' in read) throw this.#ctx.problem('bad_csr', { detail: read.refused });
    return read;
  }

  /** A start mints by secrets, which is no news (F-29); any later one wants a look (CA-079). */
  #isStarting(): boolean {
    return this.#ctx.clock.now().getTime() - this.#since < START_MS;
  }

  #announce({ certificate_id, serial, not_after }: CertificateMeta, name: string): void {
    this.#parts.announcer.tell('platform:acme:clientcert:issued', tx =>
      tx.emit('platform:acme:clientcert:issued', SYSTEM.envId, { certificate_id, service_name: name, serial, not_after }),
    );
  }
}
