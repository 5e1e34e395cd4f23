import type { LogRing } from './log-ring.ts';
import { reconnectDelay } from './reconnect-delay.ts';

export interface LiveEvent {
  readonly type: string;
  readonly payload?: unknown;
  readonly env_id?: string;
  readonly created_at?: string;
}

export type LiveState = 'connecting' | 'connected' | 'reconnecting' | 'ended';

const SESSION_ENDED = 4401;

interface LiveChannelOptions {
  url: string;
  log: LogRing;
  connect?: (url: string) => WebSocket;
  random?: () => number;
}

/** connecting → connected ⇄ reconnecting → ended. Ended means that the session is gone; nothing reconnects after it. */
export class LiveChannel {
  readonly #options: Required<LiveChannelOptions>;
  readonly #listeners = new Map<(event: LiveEvent) => void, readonly string[]>();
  readonly #watchers = new Set<() => void>();
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #attempt = 0;
  state: LiveState = 'connecting';

  constructor(options: LiveChannelOptions) {
    this.#options = { connect: (url) => new WebSocket(url), random: Math.random, ...options };
  }

  open(): void {
    const socket = this.#options.connect(this.#options.url);
    this.#socket = socket;
    socket.onopen = () => {
      this.#enter('connected');
      this.#sendTypes('subscribe', this.types());
    };
    socket.onmessage = ({ data }) => this.#receive(String(data));
    socket.onclose = ({ code }) => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      if (code === SESSION_ENDED) return this.#enter('ended');
      this.#enter('reconnecting');
      this.#timer = setTimeout(() => this.open(), reconnectDelay(this.#attempt++, this.#options.random));
    };
  }

  close(): void {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
  }

  types(): string[] {
    return [...new Set([...this.#listeners.values()].flat())];
  }

  /** Hears events of `types` until the returned function is called; a trailing `*` takes a whole branch. */
  subscribe(types: readonly string[], listener: (event: LiveEvent) => void): () => void {
    const known = new Set(this.types());
    this.#listeners.set(listener, types);
    this.#sendTypes('subscribe', types.filter((type) => !known.has(type)));
    return () => {
      this.#listeners.delete(listener);
      const left = new Set(this.types());
      this.#sendTypes('unsubscribe', types.filter((type) => !left.has(type)));
    };
  }

  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #enter(state: LiveState): void {
    this.state = state;
    this.#options.log.add({ kind: 'live', text: state });
    for (const watcher of this.#watchers) watcher();
  }

  #receive(data: string): void {
    let event: LiveEvent;
    try {
      event = JSON.parse(data) as LiveEvent;
    } catch {
      return this.#options.log.add({ kind: 'fault', text: 'live frame is not JSON' });
    }
    // The first frame, not the open, proves that the gateway keeps this connection.
    this.#attempt = 0;
    if (event.type === 'ping') return this.#send({ action: 'pong' });
    for (const [listener, types] of this.#listeners) {
      if (types.some((type) => matches(type, event.type))) listener(event);
    }
  }

  #sendTypes(action: 'subscribe' | 'unsubscribe', types: readonly string[]): void {
    if (types.length) this.#send({ action, types });
  }

  #send(frame: unknown): void {
    if (this.#socket?.readyState === 1) this.#socket.send(JSON.stringify(frame));
  }
}

function matches(wanted: string, type: string): boolean {
  return wanted === type || (wanted.endsWith('*') && type.startsWith(wanted.slice(0, -1)));
}
