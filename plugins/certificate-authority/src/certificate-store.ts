import { mkdir, open, readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';

/** Metadata of one issued certificate; the key of a client certificate is never kept. */
export interface CertificateMeta {
  readonly certificate_id: string;
  readonly serial: string;
  readonly domain: string;
  readonly kind: 'leaf' | 'client' | 'ca';
  readonly not_before: string;
  readonly not_after: string;
  readonly thumbprint: string;
  readonly source: 'local' | 'upstream';
  readonly created_at: string;
  revoked: boolean;
  revoked_at: string | null;
  reason: string | null;
}

/** Issued certificates as files, `certificates/{id}/{cert.pem,meta.json}` under the data directory (G-ACME-01), with an index in memory. */
export class CertificateStore {
  readonly #directory: string;
  readonly #index = new Map<string, CertificateMeta>();

  constructor(dataDir: string) {
    this.#directory = join(dataDir, 'certificates');
  }

  async load(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    for (const id of await readdir(this.#directory)) {
      try {
        const meta = JSON.parse(await readFile(join(this.#directory, id, 'meta.json'), 'utf8')) as CertificateMeta;
        this.#index.set(meta.certificate_id, meta);
      } catch {
        // A crash between mkdir and the metadata leaves a folder that never held a certificate anybody has.
      }
    }
  }

  async add(meta: CertificateMeta, chain: string): Promise<void> {
    const folder = join(this.#directory, meta.certificate_id);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await replaceFile(join(folder, 'cert.pem'), chain);
    await replaceFile(join(folder, 'meta.json'), JSON.stringify(meta));
    this.#index.set(meta.certificate_id, meta);
  }

  async update(meta: CertificateMeta): Promise<void> {
    await replaceFile(join(this.#directory, meta.certificate_id, 'meta.json'), JSON.stringify(meta));
    this.#index.set(meta.certificate_id, meta);
  }

  get(id: string): CertificateMeta | undefined {
    return this.#index.get(id);
  }

  has(serial: string): boolean {
    return [...this.#index.values()].some(meta => meta.serial === serial);
  }

  /** Newest first; ids are UUIDv7, so their order is that of time. */
  newest(limit: number, before?: string): CertificateMeta[] {
    const ids = [...this.#index.keys()].sort().reverse();
    return ids
      .filter(id => before === undefined || id < before)
      .slice(0, limit)
      .map(id => this.#index.get(id) as CertificateMeta);
  }

  revoked(now: Date): CertificateMeta[] {
    return [...this.#index.values()].filter(({ revoked, not_after }) => revoked && Date.parse(not_after) > now.getTime());
  }
}

async function replaceFile(path: string, content: string): Promise<void> {
  const temporary = `${path}.tmp`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}
