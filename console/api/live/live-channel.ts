import type { LogRing } from './log-ring.ts';
import { reconnectDelay } from './reconnect-delay.ts';

export interface LiveEvent {
  readonly type: string;
  readonly payload?: unknown;
  readonly env_id?: string;
  readonly created_at?: string;
}

export type LiveState = 'connecting' | 'connected' | 'reconnecting' | 'ended';

/** Told to a listener in place of what it may have missed: what it shows is to be read again. No event of the platform has this name. */
export const MISSED = 'console:missed';

const SESSION_ENDED = 4401;
/** The gateway says something every 15 s: a connection that is silent for so long has lost its other end. */
const SILENCE_MS = 60_000;

interface LiveChannelOptions {
  url: string;
  log: LogRing;
  connect?: (url: string) => WebSocket;
  random?: () => number;
}

interface Listening {
  readonly types: readonly string[];
  /** Began to listen before the gateway did so for all of its types: what it has read may be older than what it hears first. */
  behind: boolean;
}

/**
 * connecting → connected ⇄ reconnecting → ended. Ended means that the session is gone; nothing reconnects after it. What may have gone
 * unheard is told: to a listener by {@link MISSED}, to everybody by {@link whenMissed} (H-22).
 */
export class LiveChannel {
  readonly #options: Required<LiveChannelOptions>;
  readonly #listeners = new Map<(event: LiveEvent) => void, Listening>();
  readonly #watchers = new Set<() => void>();
  readonly #missers = new Set<() => void>();
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #attempt = 0;
  /** What the gateway has said that it listens to, for this connection. */
  #confirmed = new Set<string>();
  /** Frames about types that the gateway has not answered yet. */
  #asked = 0;
  /** There was a connection before this one: what happened between the two was heard by nobody. */
  #gap = false;
  state: LiveState = 'connecting';

  constructor(options: LiveChannelOptions) {
    this.#options = { connect: (url) => new WebSocket(url), random: Math.random, ...options };
  }

  open(): void {
    const socket = this.#options.connect(this.#options.url);
    this.#socket = socket;
    this.#heard();
    socket.onopen = () => {
      if (this.#socket !== socket) return;
      this.#enter('connected');
      this.#sendTypes('subscribe', this.types());
      if (this.#asked === 0) this.#caughtUp();
    };
    socket.onmessage = ({ data }) => {
      if (this.#socket === socket) this.#receive(String(data));
    };
    socket.onclose = ({ code }) => this.#closed(socket, code);
  }

  close(): void {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#lose();
    socket?.close();
  }

  types(): string[] {
    return [...new Set([...this.#listeners.values()].flatMap(({ types }) => types))];
  }

  /**
   * Hears events of `types` until the returned function is called; a trailing `*` takes a whole branch. When the gateway begins to listen
   * only after this call, the listener is told {@link MISSED} then, once: what was read until then may be older than the first event.
   */
  subscribe(types: readonly string[], listener: (event: LiveEvent) => void): () => void {
    const known = new Set(this.types());
    this.#listeners.set(listener, { types, behind: !this.#hears(types) });
    this.#sendTypes('subscribe', types.filter((type) => !known.has(type)));
    return () => {
      this.#listeners.delete(listener);
      const left = new Set(this.types());
      const gone = types.filter((type) => !left.has(type));
      for (const type of gone) this.#confirmed.delete(type);
      this.#sendTypes('unsubscribe', gone);
    };
  }

  /** Told when the state changes. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Told when events of any type may have gone unheard: after an interruption, and when the gateway says so. */
  whenMissed(misser: () => void): () => void {
    this.#missers.add(misser);
    return () => this.#missers.delete(misser);
  }

  #closed(socket: WebSocket, code: number): void {
    if (this.#socket !== socket) return;
    this.#lose();
    if (code === SESSION_ENDED) return this.#enter('ended');
    this.#enter('reconnecting');
    this.#timer = setTimeout(() => this.open(), reconnectDelay(this.#attempt++, this.#options.random));
  }

  #lose(): void {
    clearTimeout(this.#silence);
    this.#socket = undefined;
    this.#confirmed.clear();
    this.#asked = 0;
    this.#gap = true;
  }

  #enter(state: LiveState): void {
    this.state = state;
    this.#options.log.add({ kind: 'live', text: state });
    for (const watcher of this.#watchers) watcher();
  }

  #heard(): void {
    clearTimeout(this.#silence);
    const socket = this.#socket as WebSocket;
    this.#silence = setTimeout(() => {
      // Its end may take minutes to arrive, if ever.
      this.#closed(socket, 0);
      socket.close();
    }, SILENCE_MS);
  }

  #receive(data: string): void {
    this.#heard();
    let event: LiveEvent & { readonly types?: readonly string[]; readonly code?: string; readonly skipped?: number };
    try {
      event = JSON.parse(data) as LiveEvent;
    } catch {
      return this.#options.log.add({ kind: 'fault', text: 'live frame is not JSON' });
    }
    // The first frame, not the open, proves that the gateway keeps this connection.
    this.#attempt = 0;
    switch (event.type) {
      case 'ping':
        return void this.#send({ action: 'pong' });
      case 'lag':
        this.#options.log.add({ kind: 'live', text: `missed ${event.skipped}` });
        return this.#tellAll();
      case 'error':
        this.#options.log.add({ kind: 'fault', text: `live: ${event.code}` });
        return this.#answered();
      case 'subscribed':
        return this.#answered(event.types);
    }
    this.#options.log.add({ kind: 'live', text: `heard ${event.type}` });
    for (const [listener, { types }] of this.#listeners) {
      if (types.some((type) => matches(type, event.type))) listener(event);
    }
  }

  /** Frames are answered in order: the last answer is the one that holds. */
  #answered(types?: readonly string[]): void {
    this.#asked = Math.max(0, this.#asked - 1);
    if (this.#asked > 0) return;
    if (types) {
      this.#confirmed = new Set(types);
      this.#options.log.add({ kind: 'live', text: `subscribed to ${types.length} types` });
    }
    this.#caughtUp();
  }

  /** The gateway listens from now on: who read before that reads again. */
  #caughtUp(): void {
    const late = [...this.#listeners].filter(([, listening]) => listening.behind && this.#hears(listening.types));
    for (const [, listening] of late) listening.behind = false;
    if (this.#gap) {
      this.#gap = false;
      return this.#tellAll();
    }
    for (const [listener] of late) listener({ type: MISSED });
  }

  #tellAll(): void {
    for (const misser of this.#missers) misser();
  }

  #hears(types: readonly string[]): boolean {
    return types.every((type) => this.#confirmed.has(type));
  }

  #sendTypes(action: 'subscribe' | 'unsubscribe', types: readonly string[]): void {
    if (types.length && this.#send({ action, types })) this.#asked++;
  }

  #send(frame: unknown): boolean {
    if (this.#socket?.readyState !== 1) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }
}

function matches(wanted: string, type: string): boolean {
  return wanted === type || (wanted.endsWith('*') && type.startsWith(wanted.slice(0, -1)));
}
