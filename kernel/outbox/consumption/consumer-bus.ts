/** An entry as the bus hands it out (G-K-12). */
export interface StreamEntry {
  readonly message_id: string;
  readonly event_type: string;
  readonly env_id: string;
  readonly stream_family: string;
  readonly payload: object;
  readonly correlation_id: string;
  readonly idempotency_key: string;
  readonly delivery_count?: number;
  readonly replayed_from_dlq?: true;
}

/** Entries in the hands of a consumer. */
export interface Held {
  readonly env_id: string;
  readonly stream_family: string;
  readonly consumer_group: string;
  readonly consumer: string;
  readonly message_ids: readonly string[];
}
/** Those that were not its own any more: somebody else has taken them, after a minute without a word. */
export interface Lost {
  readonly lost?: readonly string[];
}

/** The bus as a consumer needs it: any environment at once, one family, one group. */
export interface ConsumerBus {
  consume(
    request: {
      env_id: '*';
      stream_family: string;
      consumer_group: string;
      consumer: string;
      count: number;
      block_ms: number;
      start: 'earliest' | 'latest';
      types?: readonly string[];
      pending?: boolean;
    },
    signal: AbortSignal,
  ): Promise<{ readonly entries: readonly StreamEntry[]; readonly gaps?: readonly object[] }>;
  ack(request: Held): Promise<Lost>;
  nack(request: Held & Refusal): Promise<Lost>;
  extend(request: Held): Promise<Lost>;
  close(request: { stream_family: string; consumer_group: string }): Promise<void>;
}

export interface Refusal {
  readonly retry_after_secs: number;
  readonly reason: string;
  readonly dead_letter?: boolean;
  /** Tries before this one that the bus has not heard of. */
  readonly earlier?: readonly { readonly at: string; readonly reason: string }[];
}
