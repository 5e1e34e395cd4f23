import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';
import { writeDurably } from '../base/durable-file.ts';
import { type Credential, makeCsr, thumbprintOf } from './certificates/authority.ts';
import { clientTls, type PqMode, serverContext } from './certificates/tls.ts';
import type { TrustAnchors } from './certificates/trust-anchors.ts';

/** The three certificates of a workload: who it is to services, to the database, and the name it answers on. */
export type CredentialKind = 'client' | 'database' | 'listener';

/** Turns a CSR into a chain, leaf first. In the authority's own process it signs; elsewhere it asks the certificate authority. */
export type Mint = (request: { kind: CredentialKind; workload: string; hostnames: readonly string[]; csr: string }) => Promise<string>;

/** A certificate is renewed when two thirds of its life are over (G-K-09). */
const renewalDue = (certificate: X509Certificate, now: number) => {
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  return now >= from + ((to - from) * 2) / 3;
};

export interface WorkloadOptions {
  readonly name: string;
  readonly directory: string;
  readonly anchors: TrustAnchors;
  readonly pqMode: PqMode;
  readonly hostnames: readonly string[];
  readonly kinds: readonly CredentialKind[];
  readonly mint: Mint;
}

/** One workload's certificates, kept in files, renewed without a restart. Keys never leave the machine: only CSRs do. */
export class Workload {
  readonly name: string;
  readonly #options: WorkloadOptions;
  readonly #credentials = new Map<CredentialKind, Credential>();
  readonly #renewed = new Set<(kind: CredentialKind) => void>();
  #listenerContext: SecureContext | undefined;

  private constructor(options: WorkloadOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** Loads what is on disk and mints what is missing, expired or due. */
  static async open(options: WorkloadOptions): Promise<Workload> {
    const workload = new Workload(options);
    await workload.renewDue(Date.now());
    return workload;
  }

  credential(kind: CredentialKind): Credential {
    const credential = this.#credentials.get(kind);
    if (!credential) throw new Error(`workload ${this.name} has no ${kind} certificate`);
    return credential;
  }

  get thumbprint(): string {
    return thumbprintOf(this.credential('client').certificate);
  }

  clientTls() {
    return clientTls(this.credential('client'), this.#options.anchors, this.#options.pqMode);
  }

  /** Context for the internal listener, chosen by SNI; made once per certificate. */
  listenerContext(): SecureContext {
    this.#listenerContext ??= createSecureContext(serverContext(this.credential('listener'), this.#options.anchors, this.#options.pqMode));
    return this.#listenerContext;
  }

  onRenewed(listener: (kind: CredentialKind) => void): Disposable {
    this.#renewed.add(listener);
    return { [Symbol.dispose]: () => this.#renewed.delete(listener) };
  }

  /** Renews what is due at `now`; called at start and by the host's hourly job. A failure leaves the old certificate in use. */
  async renewDue(now: number): Promise<readonly CredentialKind[]> {
    const renewed: CredentialKind[] = [];
    for (const kind of this.#options.kinds) {
      const known = this.#credentials.get(kind) ?? this.#load(kind);
      if (known && this.#usable(kind, known, now)) {
        this.#credentials.set(kind, known);
        continue;
      }
      this.#credentials.set(kind, await this.#mint(kind));
      if (kind === 'listener') this.#listenerContext = undefined;
      renewed.push(kind);
      for (const listener of this.#renewed) listener(kind);
    }
    return renewed;
  }

  /** Replaces the listener's certificate when it was revoked. */
  async renewListener(isRevoked: (thumbprint: string) => boolean): Promise<void> {
    const known = this.#credentials.get('listener');
    if (!known || !isRevoked(thumbprintOf(known.certificate))) return;
    this.#credentials.set('listener', await this.#mint('listener'));
    this.#listenerContext = undefined;
    for (const listener of this.#renewed) listener('listener');
  }

  #usable(kind: CredentialKind, { certificate, chain }: Credential, now: number): boolean {
    const leaf = new X509Certificate(certificate);
    if (renewalDue(leaf, now)) return false;
    const { anchors, hostnames } = this.#options;
    const intermediate = kind === 'database' ? anchors.classical.intermediate : anchors.pq.intermediate;
    // A data directory whose authority was replaced, or a listener whose names grew.
    if (!chain.includes(intermediate.trim()) || !leaf.checkIssued(new X509Certificate(intermediate))) return false;
    return kind !== 'listener' || hostnames.every(name => leaf.checkHost(name) !== undefined);
  }

  #path(kind: CredentialKind, end: 'crt' | 'key'): string {
    return join(this.#options.directory, this.name, `${kind}.${end}`);
  }

  #load(kind: CredentialKind): Credential | undefined {
    const [chainPath, keyPath] = [this.#path(kind, 'crt'), this.#path(kind, 'key')];
    if (!existsSync(chainPath) || !existsSync(keyPath)) return undefined;
    const chain = readFileSync(chainPath, 'utf8');
    return { chain, certificate: firstCertificate(chain), key: readFileSync(keyPath, 'utf8') };
  }

  async #mint(kind: CredentialKind): Promise<Credential> {
    const { name, hostnames, mint } = this.#options;
    const hierarchy = kind === 'database' ? 'classical' : 'pq';
    const commonName = kind === 'database' ? `svc.${name}` : kind === 'client' ? `m2m-${name}` : (hostnames[0] ?? name);
    const { csr, key } = await makeCsr(hierarchy, commonName, kind === 'listener' ? hostnames.map(host => `dns:${host}`) : []);
    const chain = await mint({ kind, workload: name, hostnames, csr });
    try {
      // Key before chain: a chain without its key would be taken for usable after a crash.
      writeDurably(this.#path(kind, 'key'), key);
      writeDurably(this.#path(kind, 'crt'), chain, 0o644);
    } catch (error) {
      // Inside the walls of a vertical the files are given up once they are read: what is renewed lives as long as the process.
      if ((error as NodeJS.ErrnoException).code !== 'ERR_ACCESS_DENIED') throw error;
    }
    return { chain, certificate: firstCertificate(chain), key };
  }
}

const firstCertificate = (chain: string) => `${chain.split('-----END CERTIFICATE-----')[0]}-----END CERTIFICATE-----\n`;
