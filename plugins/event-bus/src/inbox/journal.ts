/** What was done to one message or to several of which the same is to be said. */
export interface JournalEntry {
  readonly at: string;
  readonly action: 'produce' | 'ack' | 'replay';
  readonly sub: string;
  readonly env_id: string;
  readonly stream_family: string;
  readonly event_type: string | null;
  readonly message_ids: (string | null)[];
  readonly outcome: string;
  readonly correlation_id: string;
}

/** An entry as a line of the log says it: of one message alone, by its id. */
export const lineOf = ({ message_ids, ...said }: JournalEntry): object =>
  message_ids.length === 1 ? { ...said, message_id: message_ids[0] } : { ...said, message_ids };
