export interface JournalEntry {
  readonly at: string;
  readonly action: 'produce' | 'ack' | 'replay';
  readonly sub: string;
  readonly env_id: string;
  readonly stream_family: string;
  readonly event_type: string | null;
  readonly message_id: string | null;
  readonly outcome: string;
  readonly correlation_id: string;
}
type Said = Omit<JournalEntry, 'message_id'> & { readonly message_ids: (string | null)[] };

const SHARED = ['at', 'action', 'sub', 'env_id', 'stream_family', 'event_type', 'outcome', 'correlation_id'] as const;

/** Entries as a page of the journal: what was said of several messages in a row is said once. */
export function pageOf(entries: readonly JournalEntry[]): string {
  const said: Said[] = [];
  for (const { message_id, ...entry } of entries) {
    const last = said.at(-1);
    if (last && SHARED.every(member => last[member] === entry[member])) last.message_ids.push(message_id);
    else said.push({ ...entry, message_ids: [message_id] });
  }
  return JSON.stringify(said);
}
