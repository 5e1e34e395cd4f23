import { createPublicKey, type KeyObject } from 'node:crypto';
import type { JWK } from 'jose';
import { RecordFolder } from '../store/record-folder.ts';

/** An account is bound to a key (CA-049). */
export interface Account {
  readonly account_id: string;
  readonly jwk: JWK;
  readonly thumbprint: string;
  readonly status: 'valid' | 'deactivated' | 'revoked';
  readonly contact: readonly string[];
  readonly terms_agreed: boolean;
  readonly created_at: string;
  readonly ip: string;
}

/** ACME accounts as files, found by id and by key. */
export class Accounts {
  readonly #folder: RecordFolder<Account>;
  readonly #ids: string[] = [];
  readonly #byKey = new Map<string, string>();
  readonly #keys = new WeakMap<JWK, KeyObject>();

  constructor(directory: string) {
    this.#folder = new RecordFolder(directory);
  }

  load(): Promise<void> {
    return this.#folder.load(({ account_id: id, thumbprint }) => {
      this.#ids.push(id);
      this.#byKey.set(thumbprint, id);
    });
  }

  get count(): number {
    return this.#ids.length;
  }

  get(id: string): Promise<Account | undefined> {
    return this.#folder.get(id);
  }

  async byKey(thumbprint: string): Promise<Account | undefined> {
    const id = this.#byKey.get(thumbprint);
    return id === undefined ? undefined : this.#folder.get(id);
  }

  async put(account: Account): Promise<void> {
    const before = await this.#folder.get(account.account_id);
    await this.#folder.put(account.account_id, account);
    if (!before) this.#ids.push(account.account_id);
    else if (before.thumbprint !== account.thumbprint) this.#byKey.delete(before.thumbprint);
    this.#byKey.set(account.thumbprint, account.account_id);
  }

  /** The key itself, made once. */
  keyOf({ jwk }: Account): KeyObject {
    let key = this.#keys.get(jwk);
    if (!key) this.#keys.set(jwk, (key = createPublicKey({ key: jwk as never, format: 'jwk' })));
    return key;
  }

  /** Newest first; ids are UUIDv7. */
  newest(limit: number, before?: string): Promise<Account[]> {
    return newestOf(this.#ids, this.#folder, limit, before);
  }
}

/** Records by their ids, newest first, from before an id on. */
export async function newestOf<T extends object>(
  ids: readonly string[],
  folder: RecordFolder<T>,
  limit: number,
  before: string | undefined,
  fits: (record: T) => boolean = () => true,
): Promise<T[]> {
  const found: T[] = [];
  for (let index = ids.length - 1; index >= 0 && found.length < limit; index -= 1) {
    const id = ids[index] as string;
    if (before !== undefined && id >= before) continue;
    const record = await folder.get(id);
    if (record && fits(record)) found.push(record);
  }
  return found;
}
