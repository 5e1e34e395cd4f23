import type { Ctx } from '../context.ts';
import type { EventChannel } from './event-channel.ts';

interface Room {
  readonly members: Set<EventChannel>;
  readonly heard: Promise<AsyncDisposable>;
}
export interface RoomMessage {
  readonly room: string;
  readonly from: string;
  readonly body: string;
  readonly at: string;
  readonly id: string;
}

export const ROOM = /^[a-zA-Z0-9._-]{1,64}$/;

/**
 * Rooms of an application in an environment; what is said is heard in every process and kept nowhere (G-BFF-09). Life of a room: first
 * member → last member.
 */
export class Rooms implements AsyncDisposable {
  readonly #ctx: Ctx;
  readonly #rooms = new Map<string, Room>();

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async join(key: string, member: EventChannel): Promise<void> {
    let room = this.#rooms.get(key);
    if (!room) {
      const members = new Set<EventChannel>();
      room = {
        members,
        heard: this.#ctx.kv.subscribe(`bff:room:${key}`, text => {
          const data = JSON.parse(text) as Record<string, unknown>;
          for (const channel of members) channel.push({ kind: 'note', type: 'chat:message', data });
        }),
      };
      this.#rooms.set(key, room);
    }
    room.members.add(member);
    await room.heard.catch(error => {
      this.#rooms.delete(key);
      throw error;
    });
  }

  async leave(key: string, member: EventChannel): Promise<void> {
    const room = this.#rooms.get(key);
    if (!room?.members.delete(member) || room.members.size > 0) return;
    this.#rooms.delete(key);
    await (await room.heard)[Symbol.asyncDispose]();
  }

  async say(key: string, message: RoomMessage): Promise<void> {
    await this.#ctx.kv.call('PUBLISH', `bff:room:${key}`, JSON.stringify(message));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const rooms = [...this.#rooms.values()];
    this.#rooms.clear();
    await Promise.allSettled(rooms.map(async ({ heard }) => (await heard)[Symbol.asyncDispose]()));
  }
}
