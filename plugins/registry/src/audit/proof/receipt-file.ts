import { verify } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Operator } from '@platform/sdk';
import type { AuditReceipt } from '../../../contract/schema/audit.ts';
import type { KnownKey } from './key-succession.ts';
import { receiptText } from './receipt-text.ts';

/** A receipt as somebody keeps it: one signed page a line, in order. */
export interface Receipt {
  readonly at: string;
  readonly keyId: string;
  /** `position.hash` by environment. */
  readonly heads: ReadonlyMap<string, string>;
}

/** Writes a receipt of where every chain stands now. A file that is there is not overwritten: it may be the only one. */
export async function saveReceipt(operator: Operator, path: string): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  for (let cursor: string | null = null; ; ) {
    const page: AuditReceipt = await operator.call('sys', 'GET', '/v1/audit/receipt', { query: cursor ? { cursor } : {} });
    await file.appendFile(`${JSON.stringify(page)}\n`);
    if (page.next_cursor === null) return file.sync();
    cursor = page.next_cursor;
  }
}

/** Reads one, and throws when it is not whole or no key of the succession signed it. */
export async function readReceipt(path: string, keys: readonly KnownKey[]): Promise<Receipt> {
  const heads = new Map<string, string>();
  let [last, number]: [AuditReceipt | undefined, number] = [undefined, 0];
  for await (const line of createInterface({ input: createReadStream(path) })) {
    number += 1;
    const page = pageOf(line);
    const signer = keys.find(({ id }) => id === page?.key_id);
    if (!page || (last?.next_cursor ?? null) !== page.after || (last && page.after === null))
      throw new Error(`${path} is not a whole receipt: line ${number} does not follow the one before it.`);
    if (!signer)
      throw new Error(
        `${path} was signed by key ${page.key_id}, which the platform does not know: it is of another platform, or the keys were put in place of others.`,
      );
    if (!verify(null, receiptText(page), signer.key, Buffer.from(page.signature, 'hex')))
      throw new Error(`${path} is not as it was signed: line ${number}.`);
    for (const { env_id, position, hash } of page.heads) heads.set(env_id, `${position}.${hash}`);
    last = page;
  }
  if (last?.next_cursor !== null) throw new Error(`${path} is not a whole receipt: its end is missing.`);
  return { at: last.at, keyId: last.key_id, heads };
}

function pageOf(line: string): AuditReceipt | undefined {
  try {
    const page = JSON.parse(line) as AuditReceipt;
    return Array.isArray(page.heads) && typeof page.signature === 'string' ? page : undefined;
  } catch {
    return undefined;
  }
}
