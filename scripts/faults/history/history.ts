/** An event as a producer made it: the `n`th of its producer, which sends one after the other. */
export interface Sent {
  readonly producer: string;
  readonly n: number;
  /** None where the bus is to mint it: such an event is sent once, whatever is answered. */
  readonly key: string | undefined;
}

/** An entry as a consumer received it. */
export interface Received extends Sent {
  readonly key: string;
  readonly message_id: string;
}

/** What producers and consumers of a run wrote down while faults were made. */
export class History {
  readonly attempted = new Map<string, Sent>();
  readonly acknowledged = new Map<string, Sent>();
  /** What the working group received, in the order of the answers. */
  readonly received: Received[] = [];
  /** Entries whose acknowledgement the bus confirmed. */
  readonly settled = new Set<string>();
  /** Confirmed as acknowledged, and delivered to the same group again. */
  readonly undone: Received[] = [];
  /** The whole stream, as a group reads it that begins after the last fault. */
  readonly stream: Received[] = [];
  /** The store was killed: acknowledgements since its last save may be gone, as the README says. */
  storeDied = false;

  attempt(sent: Sent): void {
    this.attempted.set(nameOf(sent), sent);
  }

  acknowledge(sent: Sent): void {
    this.acknowledged.set(nameOf(sent), sent);
  }

  receive(entry: Received): void {
    this.received.push(entry);
    if (this.settled.has(entry.message_id)) this.undone.push(entry);
  }
}

export const nameOf = ({ producer, n }: Pick<Sent, 'producer' | 'n'>): string => `${producer}/${n}`;
