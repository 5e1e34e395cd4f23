import { setImmediate as otherWork } from 'node:timers/promises';
import { FairShare } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { EventChannel, type LiveEvent } from './event-channel.ts';
import type { LiveAccess } from './live-access.ts';
import type { SessionRecord } from '../session/session-store.ts';

export interface Filters {
  readonly env_id?: string;
  readonly resource_id?: string;
}
/** An event as it comes off the bus, no matter which process read it. */
export interface HeardEvent {
  readonly id: string;
  readonly event: string;
  readonly envId: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

const CHANNEL = 256;
/** How many connections are written to before other work has its turn. */
const SLICE = 64;
const CONVENTION = /^[a-z0-9_-]{1,64}(:[a-z0-9_-]{1,64}){3}$/;
const PATTERN = /^(\*|[a-z0-9_.-]+(:[a-z0-9_.-]+)*(:?\*)?)$/;
const UUIDV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7/;
/** Changes of what everybody's navigation is made of. */
const FOR_EVERYONE = new Set(['platform:sys:vertical:registered', 'platform:sys:vertical:changed']);
/** Their creator's access may be a moment older than the event. */
const GIVES_ACCESS = new Set(['platform:sys:org:created', 'platform:sys:env:created']);
const TRAFFIC = 'platform:stat:traffic:';
const TRAFFIC_SCOPES = new Set(['stat:traffic:read', 'platform:stat:traffic:read']);

/** One live connection of a session. */
export class Listener {
  readonly session: SessionRecord;
  readonly channel = new EventChannel(CHANNEL);
  readonly types = new Set<string>();
  filters: Filters = {};
  /** Called when the session is gone. */
  readonly expire: () => void;

  constructor(session: SessionRecord, expire: (listener: Listener) => void) {
    this.session = session;
    this.expire = () => expire(this);
  }

  wants({ type, payload, env_id: envId }: LiveEvent): boolean {
    const { env_id: onlyEnv, resource_id: only } = this.filters;
    if (onlyEnv !== undefined && onlyEnv !== envId) return false;
    if (only !== undefined && !Object.values(payload).includes(only)) return false;
    return [...this.types].some(wanted => wanted === type || (wanted.endsWith('*') && type.startsWith(wanted.slice(0, -1))));
  }
}

export const isTypePattern = (value: unknown): value is string => typeof value === 'string' && value.length <= 200 && PATTERN.test(value);

/** Takes events to the connections whose person may see them. Nothing is sent on a doubt; the reader is told that it missed something. */
export class LiveHub {
  readonly #ctx: Ctx;
  readonly #access: LiveAccess;
  readonly #listeners = new Set<Listener>();
  readonly #share: FairShare;
  #delivering: Promise<void> = Promise.resolve();

  constructor(ctx: Ctx, access: LiveAccess) {
    this.#ctx = ctx;
    this.#access = access;
    this.#share = new FairShare({ total: ctx.config.streams, perParty: ctx.config.streamsPerSession, atBound: 'refuse' });
  }

  /** Gauges and counters of the live connections. */
  get figures(): Readonly<Record<string, number>> {
    const { refused, ended } = this.#share.outcomes;
    return { live_streams: this.#share.size, live_refused_total: refused, live_ended_total: ended };
  }

  get listeners(): readonly Listener[] {
    return [...this.#listeners];
  }

  /** Throws `too_many_streams`; `end` is called when another session needs the place more. */
  admit(session: SessionRecord, end: () => void): Disposable {
    const place = this.#share.admit(session.session_id_hash, end);
    if (!place)
      throw this.#ctx.problem('too_many_streams', {
        detail: 'Close some tabs, or try again in a moment.',
        headers: { 'retry-after': '5' },
      });
    return place;
  }

  add(listener: Listener): Disposable {
    this.#listeners.add(listener);
    return {
      [Symbol.dispose]: () => {
        this.#listeners.delete(listener);
        listener.channel.close();
      },
    };
  }

  /** Does something with every connection, a few at a time: thousands of them must not hold up who asks for something else (F-17). */
  async each(work: (listener: Listener) => Promise<void> | void): Promise<void> {
    const { listeners } = this;
    for (let start = 0; start < listeners.length; start += SLICE) {
      if (start > 0) await otherWork();
      await Promise.all(listeners.slice(start, start + SLICE).map(work));
    }
  }

  /** Ends every connection of a session. */
  expire(sessionHash: string): void {
    for (const listener of this.listeners) if (listener.session.session_id_hash === sessionHash) listener.expire();
  }

  /** Tells every connection of a session what the gateway itself knows, whatever types it asked for (GWY-088). */
  notify(sessionHash: string, { type, payload, envId }: { type: string; payload: Readonly<Record<string, unknown>>; envId: string }): void {
    const event: LiveEvent = {
      type,
      payload,
      env_id: envId,
      created_at: this.#ctx.clock.now().toISOString(),
      idempotency_key: this.#ctx.platform.newId(),
    };
    for (const listener of this.listeners)
      if (listener.session.session_id_hash === sessionHash) listener.channel.push({ kind: 'event', event });
  }

  /** Events went by that nobody here heard: every listener is told to read again (H-22). */
  missed(): void {
    const at = this.#ctx.clock.now().toISOString();
    for (const { types, channel } of this.#listeners) if (types.size > 0) channel.missed(at);
  }

  /** One event after the other, so that every reader sees them in the order they came. */
  readonly publish = (heard: HeardEvent): Promise<void> => {
    const delivery = this.#delivering.then(() => this.#deliver(heard));
    this.#delivering = delivery.catch(() => undefined);
    return delivery;
  };

  async #deliver({ id, event: type, envId, payload }: HeardEvent): Promise<void> {
    if (!CONVENTION.test(type) || this.#listeners.size === 0) return;
    const { publisher_id_token: _stripped, ...shown } = payload;
    const event: LiveEvent = { type, payload: shown, env_id: envId, created_at: this.#createdAt(id), idempotency_key: id };
    await this.each(async listener => {
      if (!listener.wants(event)) return;
      try {
        if (await this.#maySee(listener.session, event)) listener.channel.push({ kind: 'event', event });
      } catch (error) {
        this.#ctx.log.warn({ event_type: type, err: error }, 'access to an event could not be decided');
        listener.channel.missed(event.created_at);
      }
    });
  }

  async #maySee(session: SessionRecord, event: LiveEvent): Promise<boolean> {
    if (await this.#visible(session, event)) return true;
    if (!GIVES_ACCESS.has(event.type)) return false;
    this.#access.settle(session);
    return this.#visible(session, event);
  }

  async #visible(session: SessionRecord, { type, env_id: envId, payload }: LiveEvent): Promise<boolean> {
    const [vertical, service] = type.split(':');
    const { org_id: orgId, user_id: userId } = payload;
    const platform = vertical === 'platform';
    if (FOR_EVERYONE.has(type)) return true;
    // A message is its recipient's, no matter who else may read the environment.
    if (platform && service === 'post' && typeof userId === 'string') return userId === session.user_id;
    if (type.startsWith(TRAFFIC) && !(await this.#access.scopes(session)).some(scope => TRAFFIC_SCOPES.has(scope)))
      return this.#access.isPlatformAdmin(session);
    if (await this.#access.mayRead(session, envId)) return true;
    // The registry's word on whose it is: an environment may be gone, and the system's events are about organizations.
    return platform && service === 'sys' && typeof orgId === 'string' && this.#access.mayReadOrg(session, orgId);
  }

  /** Ids of events carry their time. */
  #createdAt(id: string): string {
    const ms = UUIDV7.test(id) ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : this.#ctx.clock.now().getTime();
    return new Date(ms).toISOString();
  }
}
