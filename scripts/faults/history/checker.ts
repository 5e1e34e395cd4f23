import { type History, nameOf, type Received } from './history.ts';

export interface Violation {
  readonly rule: 'lost' | 'out of order' | 'two keys' | 'never sent' | 'acknowledgement undone';
  readonly event: string;
  readonly detail: string;
}

/** Compares what was acknowledged with what is there (issue: nothing acknowledged is ever lost). */
export function check(history: History): Violation[] {
  return [...lost(history), ...outOfOrder(history), ...twoKeys(history), ...neverSent(history), ...undone(history)];
}

function lost({ acknowledged, stream }: History): Violation[] {
  const there = new Set(stream.map(nameOf));
  return [...acknowledged.values()]
    .filter(sent => !there.has(nameOf(sent)))
    .map(sent => ({ rule: 'lost', event: nameOf(sent), detail: `acknowledged under ${sent.key ?? 'a minted key'} and on no stream` }));
}

/**
 * First copies count: a later copy of an event that was delivered already is a duplicate and in nobody's way. So is one whose producer went
 * on without an answer.
 */
function outOfOrder({ attempted, acknowledged, stream }: History): Violation[] {
  const last = new Map<string, number>();
  const seen = new Set<string>();
  const found: Violation[] = [];
  for (const entry of stream) {
    if (seen.has(nameOf(entry))) continue;
    const sent = attempted.get(nameOf(entry));
    if (sent && sent.key === undefined && !acknowledged.has(nameOf(entry))) continue;
    seen.add(nameOf(entry));
    const before = last.get(entry.producer) ?? -1;
    if (entry.n < before)
      found.push({ rule: 'out of order', event: nameOf(entry), detail: `first seen after ${entry.producer}/${before}` });
    else last.set(entry.producer, entry.n);
  }
  return found;
}

function twoKeys({ stream, received }: History): Violation[] {
  const keys = new Map<string, string>();
  return [...stream, ...received].flatMap(entry => {
    const first = keys.get(nameOf(entry)) ?? entry.key;
    keys.set(nameOf(entry), first);
    return first === entry.key ? [] : [{ rule: 'two keys' as const, event: nameOf(entry), detail: `${first} and ${entry.key}` }];
  });
}

function neverSent({ attempted, stream, received }: History): Violation[] {
  const isStrange = (entry: Received): boolean => {
    const sent = attempted.get(nameOf(entry));
    return !sent || (sent.key !== undefined && sent.key !== entry.key);
  };
  const strangers = new Map([...stream, ...received].filter(isStrange).map((entry): [string, Received] => [nameOf(entry), entry]));
  return [...strangers.values()].map(entry => ({ rule: 'never sent', event: nameOf(entry), detail: `delivered under ${entry.key}` }));
}

function undone({ undone: again, storeDied }: History): Violation[] {
  return storeDied
    ? []
    : again.map(entry => ({
        rule: 'acknowledgement undone',
        event: nameOf(entry),
        detail: `${entry.message_id} was delivered to the group that had acknowledged it`,
      }));
}
