import { BoundedMap, readOptional, replaceFile } from '@platform/sdk';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

const ID = /^[0-9a-f-]{36}$/;
const AT_ONCE = 32;
const KEPT = 1_000;

/** Records of one kind as files, `{directory}/{id}.json` (G-ACME-01): written whole or not at all, the latest thousand also in memory. */
export class RecordFolder<T extends object> {
  readonly #directory: string;
  readonly #recent = new BoundedMap<string, T>(KEPT);

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Reads every record once, for a caller that keeps an index. What a crash left half is no record. */
  async load(each: (record: T) => void): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const names = (await readdir(this.#directory)).sort();
    for (const left of names.filter(name => name.endsWith('.tmp'))) await rm(join(this.#directory, left), { force: true });
    const ids = names.flatMap(name => (name.endsWith('.json') ? name.slice(0, -5) : [])).filter(id => ID.test(id));
    for (let index = 0; index < ids.length; index += AT_ONCE) {
      const read = await Promise.all(ids.slice(index, index + AT_ONCE).map(id => this.#read(id)));
      for (const record of read) if (record) each(record);
    }
  }

  async get(id: string): Promise<T | undefined> {
    if (!ID.test(id)) return undefined;
    return this.#recent.get(id) ?? (await this.#read(id));
  }

  async put(id: string, record: T): Promise<void> {
    await replaceFile(join(this.#directory, `${id}.json`), JSON.stringify(record));
    this.#keep(id, record);
  }

  async remove(id: string): Promise<void> {
    this.#recent.delete(id);
    await rm(join(this.#directory, `${id}.json`), { force: true });
  }

  async #read(id: string): Promise<T | undefined> {
    const text = await readOptional(join(this.#directory, `${id}.json`));
    if (text === undefined) return undefined;
    try {
      const record = JSON.parse(text) as T;
      if (!this.#recent.has(id)) this.#keep(id, record);
      return this.#recent.get(id);
    } catch {
      return undefined;
    }
  }

  #keep(id: string, record: T): void {
    this.#recent.set(id, record);
  }
}
