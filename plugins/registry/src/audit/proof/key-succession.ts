import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { fingerprintOf, keyIdOf } from './audit-key.ts';
import { signedText } from '../audit-statement.ts';

/** How a key came into force. */
export interface KeyEntry {
  readonly seq: number;
  readonly key_id: string;
  readonly public_key: string;
  /** Milliseconds; the first key signs from the beginning. */
  readonly since: number;
  /** The introduction, signed by the key before it and by the key itself. */
  readonly by_previous: string | null;
  readonly by_itself: string;
}
export interface KnownKey {
  readonly id: string;
  readonly key: KeyObject;
  readonly since: number;
  /** When the next one came into force. */
  readonly until: number;
}

const FIRST = '-';

/** What both keys sign: the new key, its time, and everything that was said of the keys before it. */
export function introduction(
  { seq, public_key, since }: Pick<KeyEntry, 'seq' | 'public_key' | 'since'>,
  before: readonly KeyEntry[],
): Buffer {
  const last = before.at(-1);
  return signedText(
    'key',
    seq,
    fingerprintOf(createPublicKey(public_key)),
    since,
    last
      ? createHash('sha256')
          .update(introduction(last, before.slice(0, -1)))
          .digest('hex')
      : FIRST,
  );
}

/**
 * The keys, when every one was introduced by the one before it and says so itself; else undefined. A reader that trusts one of them can
 * trust those after it, because it introduced them, and those before it, because it named them when it came into force.
 */
export function succession(entries: readonly KeyEntry[]): readonly KnownKey[] | undefined {
  try {
    return followed(entries);
  } catch {
    // What is no public key at all.
    return undefined;
  }
}

function followed(entries: readonly KeyEntry[]): readonly KnownKey[] | undefined {
  const keys: KnownKey[] = [];
  for (const [index, entry] of entries.entries()) {
    const key = createPublicKey(entry.public_key);
    const text = introduction(entry, entries.slice(0, index));
    const previous = keys.at(-1);
    const introduced =
      !previous ||
      (entry.by_previous !== null &&
        entry.since > previous.since &&
        verify(null, text, previous.key, Buffer.from(entry.by_previous, 'hex')));
    if (
      entry.seq !== index + 1 ||
      entry.key_id !== keyIdOf(entry.public_key) ||
      !introduced ||
      !verify(null, text, key, Buffer.from(entry.by_itself, 'hex'))
    )
      return undefined;
    keys.push({ id: entry.key_id, key, since: entry.since, until: entries[index + 1]?.since ?? Number.POSITIVE_INFINITY });
  }
  return keys;
}
