import { admits, EVENT_STREAM_HEADERS, eventFrame, HEARTBEAT_FRAME, type RawExchange } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { json, type Methods, visitOf } from '../door.ts';
import type { Frame } from './event-channel.ts';
import type { Guard } from '../session/guard.ts';
import { type Filters, isTypePattern, Listener, type LiveHub } from './live-hub.ts';
import type { SessionRecord } from '../session/session-store.ts';

interface Stream {
  readonly id: string;
  readonly listener: Listener;
}

const MAX_TYPES = 200;
const STREAM = { ...EVENT_STREAM_HEADERS, 'content-type': 'text/event-stream; charset=utf-8' };

/** Live events as server-sent events: one stream per session, a new one takes the place of the old (G-BFF-08). */
export class Subscriptions {
  readonly #ctx: Ctx;
  readonly #guard: Guard;
  readonly #hub: LiveHub;
  readonly #streams = new Map<string, Stream>();

  constructor(ctx: Ctx, { guard, hub }: { guard: Guard; hub: LiveHub }) {
    this.#ctx = ctx;
    this.#guard = guard;
    this.#hub = hub;
  }

  readonly methods: Methods = {
    GET: exchange => this.#open(exchange),
    POST: async exchange => {
      const stream = this.#streamOf(await this.#guard.mutation(visitOf(exchange), 'origin'));
      const { types, filters } = this.#wanted(await exchange.json({ of: 'any' }));
      const { listener } = stream;
      listener.types.clear();
      for (const type of types) listener.types.add(type);
      listener.filters = filters;
      return json({ subscription_id: stream.id, types });
    },
    DELETE: async exchange => {
      this.#streamOf(await this.#guard.mutation(visitOf(exchange), 'origin')).listener.channel.close();
      return new Response(null, { status: 204 });
    },
  };

  async #open(exchange: RawExchange): Promise<Response> {
    const visit = visitOf(exchange);
    const session = await this.#guard.session(visit);
    // Opening replaces the stream that is there, so another site must not.
    if (visit.header('origin') !== undefined) this.#guard.sameOrigin(visit);
    // Nor does a stream that the door will not let out, or of which the head alone is asked for.
    if (exchange.request.method === 'HEAD' || !admits(visit.header('accept'), STREAM['content-type']))
      return new Response(null, { headers: STREAM });
    const listener = new Listener(session, ({ channel }) =>
      channel.close({ kind: 'note', type: 'platform:bff:session:expired', data: {} }),
    );
    const asked = new URL(exchange.request.url).searchParams.get('types');
    for (const type of this.#types((asked ?? '').split(',').filter(Boolean))) listener.types.add(type);
    const stream: Stream = { id: this.#ctx.platform.newId(), listener };
    const hash = session.session_id_hash;
    const place = this.#hub.admit(session, () => listener.channel.close());
    this.#streams.get(hash)?.listener.channel.close();
    this.#streams.set(hash, stream);
    const added = this.#hub.add(listener);
    const end = () => {
      place[Symbol.dispose]();
      added[Symbol.dispose]();
      if (this.#streams.get(hash) === stream) this.#streams.delete(hash);
    };
    if (exchange.request.signal.aborted) end();
    else exchange.request.signal.addEventListener('abort', end, { once: true });
    listener.channel.push({ kind: 'note', type: 'ready', data: { subscription_id: stream.id } });
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const frame = await listener.channel.next();
          if (frame) return controller.enqueue(encoder.encode(written(frame)));
          end();
          controller.close();
        },
        cancel: end,
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { headers: STREAM });
  }

  #streamOf(session: SessionRecord): Stream {
    const stream = this.#streams.get(session.session_id_hash);
    if (!stream) throw this.#ctx.problem('no_live_stream', { detail: 'GET /subscribe opens one.' });
    return stream;
  }

  #wanted(body: unknown): { types: readonly string[]; filters: Filters } {
    const { types, filters = {}, ...unknown } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
    const {
      env_id: envId,
      resource_id: resourceId,
      ...others
    } = (typeof filters === 'object' && filters !== null ? filters : { '': 1 }) as Record<string, unknown>;
    const text = (value: unknown) => value === undefined || (typeof value === 'string' && value.length <= 200);
    if (!Array.isArray(types) || Object.keys({ ...unknown, ...others }).length > 0 || !text(envId) || !text(resourceId)) {
      throw this.#ctx.problem('malformed', { detail: 'Send { types: string[], filters?: { env_id?, resource_id? } }.' });
    }
    return {
      types: this.#types(types),
      filters: {
        ...(envId === undefined ? {} : { env_id: envId as string }),
        ...(resourceId === undefined ? {} : { resource_id: resourceId as string }),
      },
    };
  }

  #types(given: readonly unknown[]): readonly string[] {
    if (given.length > MAX_TYPES || !given.every(isTypePattern))
      throw this.#ctx.problem('malformed', { detail: `Name at most ${MAX_TYPES} event types, each whole or ending in *.` });
    return given as readonly string[];
  }
}

function written(frame: Frame): string {
  switch (frame.kind) {
    case 'ping':
      return HEARTBEAT_FRAME;
    case 'event':
      return eventFrame({ id: frame.event.idempotency_key, event: frame.event.type, data: frame.event });
    case 'note':
      return eventFrame({ event: frame.type, data: frame.data });
    case 'lag':
      return eventFrame({ event: 'lag', data: { skipped: frame.skipped, from: frame.from, to: frame.to } });
  }
}
