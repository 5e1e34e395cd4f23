export interface LogEntry {
  readonly at: string;
  readonly kind: 'call' | 'live' | 'fault';
  readonly text: string;
  readonly correlation_id?: string;
  readonly status?: number;
  readonly ms?: number;
}

/** The last thousand things that happened, in memory only; the oldest is dropped first. */
export class LogRing {
  readonly #entries: LogEntry[] = [];
  readonly #size: number;

  constructor(size = 1000) {
    this.#size = size;
  }

  add(entry: Omit<LogEntry, 'at'>): void {
    this.#entries.push({ at: new Date().toISOString(), ...entry });
    if (this.#entries.length > this.#size) this.#entries.shift();
  }

  entries(): LogEntry[] {
    return [...this.#entries];
  }
}
