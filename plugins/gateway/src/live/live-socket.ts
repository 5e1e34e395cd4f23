import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, isProblem, type Request } from '@platform/sdk';
import type { Visit } from '../apps/apps.ts';
import type { Ctx } from '../context.ts';
import { EventChannel, type Frame } from './event-channel.ts';
import type { Guard } from '../session/guard.ts';
import { isTypePattern, Listener, type LiveHub } from './live-hub.ts';
import { ROOM, type Rooms } from './rooms.ts';

const CHAT_CHANNEL = 64;
const CHAT_BODY = 8_192;
const MAX_TYPES = 200;
const MAX_ROOMS = 50;
const BUFFER = 1_048_576;
const DRAIN_MS = 20;
const MISSED_PINGS = 2;
const CLOSE = { away: 1001, crowded: 1013, sessionEnded: 4401 } as const;

interface Live {
  readonly connection: Connection;
  unanswered: number;
}

/**
 * The WebSocket of a page: event types it asks for, and rooms. It is upgraded only after origin, session and binding are right (G-BFF-09).
 */
export class LiveSockets {
  readonly #ctx: Ctx;
  readonly #parts: { guard: Guard; hub: LiveHub; rooms: Rooms };
  readonly #live = new Map<Listener, Live>();

  constructor(ctx: Ctx, parts: { guard: Guard; hub: LiveHub; rooms: Rooms }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  get size(): number {
    return this.#live.size;
  }

  async serve(connection: Connection, request: Request<Record<string, string>>): Promise<void> {
    const { guard, hub, rooms } = this.#parts;
    const visit: Visit = { hostname: request.hostname, tenant: request.tenant, ip: request.ip, header: name => request.headers[name] };
    guard.sameOrigin(visit);
    const session = await guard.session(visit);
    using _place = hub.admit(session, () => connection.close(CLOSE.crowded, 'needed for somebody else'));
    const listener = new Listener(session, () => connection.close(CLOSE.sessionEnded, 'session ended'));
    const chat = new EventChannel(CHAT_CHANNEL);
    const joined = new Set<string>();
    const live: Live = { connection, unanswered: 0 };
    connection.accept();
    using _added = hub.add(listener);
    this.#live.set(listener, live);
    const pumps = [pump(listener.channel, connection), pump(chat, connection)];
    try {
      // Signed out between the check and here: the broadcast came before there was anybody to hear it.
      await guard.session(visit).catch(error => isProblem(error) && error.status === 401 && listener.expire());
      for await (const message of connection.messages) {
        live.unanswered = 0;
        await this.#act(message, { connection, listener, chat, joined });
      }
    } finally {
      this.#live.delete(listener);
      listener.channel.close();
      chat.close();
      await Promise.all([...pumps, ...[...joined].map(room => rooms.leave(this.#roomKey(listener, room), chat))]);
    }
  }

  /** One heartbeat: a ping to everybody, and the end of who left two unanswered. */
  beat(): void {
    for (const live of this.#live.values()) {
      if (live.unanswered >= MISSED_PINGS) live.connection.close(CLOSE.away, 'no pong');
      live.unanswered += 1;
    }
  }

  async #act(
    message: unknown,
    { connection, listener, chat, joined }: { connection: Connection; listener: Listener; chat: EventChannel; joined: Set<string> },
  ): Promise<void> {
    const refuse = (code: string, detail: string) => connection.send({ type: 'error', code, detail });
    const { action, types, room, body } = (typeof message === 'object' && message !== null ? message : {}) as Record<string, unknown>;
    const { rooms } = this.#parts;
    switch (action) {
      case 'pong':
        return;
      case 'subscribe':
      case 'unsubscribe': {
        if (!Array.isArray(types) || !types.every(isTypePattern) || types.length + listener.types.size > 2 * MAX_TYPES)
          return refuse('malformed', 'types names events, each whole or ending in *');
        for (const type of types) action === 'subscribe' ? listener.types.add(type) : listener.types.delete(type);
        return connection.send({ type: 'subscribed', types: [...listener.types] });
      }
      case 'join':
      case 'leave':
      case 'message': {
        if (typeof room !== 'string' || !ROOM.test(room))
          return refuse('bad_room', 'A room has 1 to 64 characters of a-z, A-Z, 0-9, dot, underscore and hyphen');
        const key = this.#roomKey(listener, room);
        if (action === 'leave') {
          joined.delete(room);
          return rooms.leave(key, chat);
        }
        if (action === 'join') {
          if (joined.size >= MAX_ROOMS) return refuse('too_many_rooms', `At most ${MAX_ROOMS} rooms`);
          joined.add(room);
          return rooms.join(key, chat);
        }
        if (!joined.has(room)) return refuse('not_joined', 'Join the room first');
        if (typeof body !== 'string' || Buffer.byteLength(body) > CHAT_BODY)
          return refuse('bad_message', `A message is a text of at most ${CHAT_BODY} bytes`);
        return rooms.say(key, {
          room,
          from: listener.session.user_id,
          body,
          at: this.#ctx.clock.now().toISOString(),
          id: this.#ctx.platform.newId(),
        });
      }
      default:
        return refuse('unknown_action', 'Use subscribe, unsubscribe, join, leave, message or pong');
    }
  }

  #roomKey({ session }: Listener, room: string): string {
    return `${session.env_id}:${session.app_instance_id ?? ''}:${room}`;
  }
}

/** Writes a channel to the wire no faster than the other side reads. */
async function pump(channel: EventChannel, connection: Connection): Promise<void> {
  for (let frame = await channel.next(); frame; frame = await channel.next()) {
    while (connection.bufferedBytes > BUFFER && !channel.closed) await delay(DRAIN_MS, undefined, { ref: false });
    connection.send(written(frame));
  }
}

function written(frame: Frame): object {
  switch (frame.kind) {
    case 'ping':
      return { type: 'ping' };
    case 'event':
      return frame.event;
    case 'note':
      return { type: frame.type, ...frame.data };
    case 'lag':
      return { type: 'lag', skipped: frame.skipped, from: frame.from, to: frame.to };
  }
}
