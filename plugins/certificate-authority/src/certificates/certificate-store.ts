import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readOptional, replaceFile, replaceFiles } from '@platform/sdk';

/** Metadata of one issued certificate (CA-045); the key of a client certificate is never kept. */
export interface CertificateMeta {
  readonly certificate_id: string;
  readonly serial: string;
  readonly domain: string;
  readonly names?: readonly string[];
  readonly kind: 'leaf' | 'client' | 'ca';
  readonly not_before: string;
  readonly not_after: string;
  readonly thumbprint: string;
  readonly source: 'local' | 'upstream';
  readonly created_at: string;
  /** The ACME account it was issued to. */
  readonly account_id?: string;
  /** Of the issuer, hexadecimal: with the serial it names the certificate for renewal information (RFC 9773). */
  readonly issuer_key_id?: string;
  revoked: boolean;
  revoked_at: string | null;
  reason: string | null;
}

const AT_ONCE = 32;

/** Issued certificates as files, `certificates/{id}/{cert.pem,meta.json}` under the data directory (G-ACME-01), with an index in memory. */
export class CertificateStore {
  readonly #directory: string;
  readonly #index = new Map<string, CertificateMeta>();
  /** Ids in the order of their making: they are UUIDv7. */
  #ids: string[] = [];
  readonly #bySerial = new Map<string, string>();
  readonly #byThumbprint = new Map<string, string>();
  readonly #replaced = new Set<string>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  async load(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const ids = (await readdir(this.#directory)).sort();
    for (let index = 0; index < ids.length; index += AT_ONCE)
      await Promise.all(ids.slice(index, index + AT_ONCE).map(id => this.#loadOne(id)));
    this.#ids.sort();
  }

  async #loadOne(id: string): Promise<void> {
    try {
      const meta = JSON.parse(await readFile(join(this.#directory, id, 'meta.json'), 'utf8')) as CertificateMeta;
      if (meta.certificate_id === id) this.#put(meta, true);
    } catch {
      // A crash between mkdir and the metadata leaves a folder that never held a certificate anybody has.
    }
  }

  /** `key`: of certificates of an upstream authority alone, whose key is the platform's own (C22). */
  async add(meta: CertificateMeta, chain: string, key?: string): Promise<void> {
    const folder = join(this.#directory, meta.certificate_id);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const own = key === undefined ? [] : ([[join(folder, 'key.pem'), key]] as const);
    await replaceFiles([...own, [join(folder, 'cert.pem'), chain], [join(folder, 'meta.json'), JSON.stringify(meta)]]);
    this.#put(meta);
  }

  async update(meta: CertificateMeta): Promise<void> {
    await replaceFile(join(this.#directory, meta.certificate_id, 'meta.json'), JSON.stringify(meta));
    this.#index.set(meta.certificate_id, meta);
  }

  get count(): number {
    return this.#ids.length;
  }

  get(id: string): CertificateMeta | undefined {
    return this.#index.get(id);
  }

  /** Leaf first, root left out. */
  chain(id: string): Promise<string | undefined> {
    return this.#index.has(id) ? readOptional(join(this.#directory, id, 'cert.pem')) : Promise.resolve(undefined);
  }

  key(id: string): Promise<string | undefined> {
    return this.#index.get(id)?.source === 'upstream' ? readOptional(join(this.#directory, id, 'key.pem')) : Promise.resolve(undefined);
  }

  /** The key of an upstream order whose certificate is not there yet. */
  pendingKey(orderId: string): Promise<string | undefined> {
    return readOptional(join(this.#directory, `${orderId}.key.pem`));
  }

  keepPendingKey(orderId: string, key: string): Promise<void> {
    return replaceFile(join(this.#directory, `${orderId}.key.pem`), key);
  }

  dropPendingKey(orderId: string): Promise<void> {
    return rm(join(this.#directory, `${orderId}.key.pem`), { force: true });
  }

  has(serial: string): boolean {
    return this.#bySerial.has(serial);
  }

  bySerial(serial: string): CertificateMeta | undefined {
    return this.#index.get(this.#bySerial.get(serial) ?? '');
  }

  byThumbprint(thumbprint: string): CertificateMeta | undefined {
    return this.#index.get(this.#byThumbprint.get(thumbprint) ?? '');
  }

  /** The last one of an upstream authority for a name, while it is good. */
  upstreamFor(domain: string, now: Date): CertificateMeta | undefined {
    for (let index = this.#ids.length - 1; index >= 0; index -= 1) {
      const meta = this.#index.get(this.#ids[index] as string) as CertificateMeta;
      if (
        meta.source === 'upstream' &&
        !meta.revoked &&
        meta.names?.includes(`dns:${domain}`) &&
        Date.parse(meta.not_after) > now.getTime()
      )
        return meta;
    }
    return undefined;
  }

  all(): IterableIterator<CertificateMeta> {
    return this.#index.values();
  }

  /** Newest first, from before an id on. */
  newest(limit: number, before?: string, fits: (meta: CertificateMeta) => boolean = () => true): CertificateMeta[] {
    const found: CertificateMeta[] = [];
    for (let index = this.#ids.length - 1; index >= 0 && found.length < limit; index -= 1) {
      const id = this.#ids[index] as string;
      const meta = this.#index.get(id) as CertificateMeta;
      if ((before === undefined || id < before) && fits(meta)) found.push(meta);
    }
    return found;
  }

  revoked(now: Date): CertificateMeta[] {
    return [...this.#index.values()].filter(({ revoked, not_after }) => revoked && Date.parse(not_after) > now.getTime());
  }

  /** Whether an order already named it as the one it replaces (RFC 9773, 5). */
  isReplaced(id: string): boolean {
    return this.#replaced.has(id);
  }

  setReplaced(id: string): void {
    this.#replaced.add(id);
  }

  #put(meta: CertificateMeta, loading = false): void {
    const id = meta.certificate_id;
    const last = this.#ids.at(-1);
    this.#ids.push(id);
    if (!loading && last !== undefined && last > id) this.#ids.sort();
    this.#index.set(id, meta);
    this.#bySerial.set(meta.serial, id);
    this.#byThumbprint.set(meta.thumbprint, id);
  }
}
