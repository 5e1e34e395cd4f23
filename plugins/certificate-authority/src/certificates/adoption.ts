import { X509Certificate } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Ctx } from '../context.ts';
import type { Issuance } from '../issuance/issuance.ts';
import type { CertificateMeta, CertificateStore } from './certificate-store.ts';

const FILES = ['client', 'database', 'listener'];

/**
 * Takes over what the kernel signed beside this service (day-one 2): what it noted, and what lies in its folders, so that nothing in use is
 * unknown.
 */
export class Adoption {
  readonly #ctx: Ctx;
  readonly #store: CertificateStore;
  readonly #issuance: Issuance;
  #read = 0;

  constructor(ctx: Ctx, store: CertificateStore, issuance: Issuance) {
    this.#ctx = ctx;
    this.#store = store;
    this.#issuance = issuance;
  }

  async run(): Promise<void> {
    await this.noted();
    for (const chain of await this.#kept()) await this.#adopt(chain);
  }

  async noted(): Promise<void> {
    for (const chain of await this.#noted()) await this.#adopt(chain);
  }

  /** Whole lines behind those that were read before. */
  async #noted(): Promise<string[]> {
    const text = await readFile(join(this.#ctx.platform.dataDir, 'ca', 'minted.jsonl')).catch(() => Buffer.alloc(0));
    if (text.length < this.#read) this.#read = 0;
    const end = text.lastIndexOf(0x0a) + 1;
    const lines = text.subarray(this.#read, end).toString('utf8').split('\n').filter(Boolean);
    this.#read = Math.max(end, this.#read);
    return lines.flatMap(line => {
      try {
        return [(JSON.parse(line) as { chain: string }).chain];
      } catch {
        return [];
      }
    });
  }

  async #kept(): Promise<string[]> {
    const home = join(this.#ctx.platform.dataDir, 'keys');
    const workloads = (await readdir(home, { withFileTypes: true }).catch(() => [])).filter(entry => entry.isDirectory());
    const read = await Promise.all(
      workloads.flatMap(({ name }) => FILES.map(kind => readFile(join(home, name, `${kind}.crt`), 'utf8').catch(() => ''))),
    );
    return read.filter(chain => chain !== '');
  }

  async #adopt(chain: string): Promise<void> {
    let leaf: X509Certificate;
    try {
      leaf = new X509Certificate(chain);
    } catch (error) {
      return this.#ctx.log.warn({ err: error }, 'a file among the platform’s certificates is none');
    }
    const serial = leaf.serialNumber.toLowerCase();
    if (this.#store.has(serial)) return;
    const subject = /CN=([^\n]+)/.exec(leaf.subject)?.[1] ?? '';
    const meta: CertificateMeta = {
      certificate_id: this.#ctx.platform.newId(),
      serial,
      domain: subject,
      names: (leaf.subjectAltName ?? '').split(', ').map(name =>
        name
          .replace(/^DNS:/, 'dns:')
          .replace(/^URI:/, 'uri:')
          .replace(/^IP Address:/, 'ip:'),
      ),
      kind: leaf.keyUsage?.includes('1.3.6.1.5.5.7.3.1') ? 'leaf' : 'client',
      not_before: new Date(leaf.validFrom).toISOString(),
      not_after: new Date(leaf.validTo).toISOString(),
      thumbprint: Buffer.from(leaf.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url'),
      source: 'local',
      created_at: this.#ctx.clock.now().toISOString(),
      revoked: false,
      revoked_at: null,
      reason: null,
    };
    await this.#issuance.logged('adopted', meta, 'kernel');
    await this.#store.add(meta, chain);
  }
}
