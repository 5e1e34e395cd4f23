import { createHash } from 'node:crypto';
import type { Sealed, SealedBox } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { json, type Methods, visitOf } from '../door.ts';
import type { Guard } from '../session/guard.ts';
import type { SessionRecord } from '../session/session-store.ts';
import { pushKey } from '../session/push-key.ts';

const MAX_TOKEN = 4_096;
const MAX_DEVICES = 20;
const PLATFORMS = ['ios', 'android', 'web'];
/** Adds or replaces one device of a session, up to a number; answers the id that stays, or nothing when there is no room. */
const UPSERT = `
local known = redis.call('HGET', KEYS[1], ARGV[1])
if not known and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return nil end
local device = cjson.decode(ARGV[2])
if known then device.push_id = cjson.decode(known).push_id end
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(device))
redis.call('PEXPIREAT', KEYS[1], ARGV[4])
return device.push_id`;

/** One device as it is kept. */
export interface KeptDevice {
  readonly push_id: string;
  readonly platform: 'ios' | 'android' | 'web';
  readonly app_version: string;
  readonly token_enc: Sealed;
}

/** Devices that a session wants to be reached on (GWY-045; G-BFF-10). Their tokens are sealed, and gone with the session. */
export class PushDevices {
  readonly #ctx: Ctx;
  readonly #guard: Guard;
  readonly #box: SealedBox;

  constructor(ctx: Ctx, guard: Guard) {
    this.#ctx = ctx;
    this.#guard = guard;
    this.#box = ctx.keys.sessions;
  }

  readonly methods: Methods = {
    POST: async exchange => {
      const session = await this.#guard.mutation(visitOf(exchange), 'origin');
      const { token, platform, version } = this.#device(await exchange.json({ of: 'any' }));
      const sealed = this.#box.seal(pushKey(session.session_id_hash), token);
      const device = { push_id: this.#ctx.platform.newId(), platform, app_version: version ?? '', token_enc: sealed };
      const expires = session.absolute_expires_at;
      const id = await this.#keep(session, createHash('sha256').update(token).digest('hex'), device);
      if (id === undefined)
        throw this.#ctx.problem('too_many_devices', {
          detail: `A session has at most ${MAX_DEVICES} devices; sign out and in again to begin anew.`,
        });
      return json({ push_id: id, expires_at: expires }, 201);
    },
  };

  async #keep(
    { session_id_hash: hash, absolute_expires_at: until }: SessionRecord,
    field: string,
    device: object,
  ): Promise<string | undefined> {
    const id = await this.#ctx.kv.call('EVAL', UPSERT, 1, pushKey(hash), field, JSON.stringify(device), MAX_DEVICES, Date.parse(until));
    return typeof id === 'string' ? id : undefined;
  }

  #device(body: unknown): { token: string; platform: string; version: string | undefined } {
    const {
      device_token: token,
      platform,
      app_version: version,
      ...unknown
    } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
    const fits =
      typeof token === 'string' &&
      token !== '' &&
      token.length <= MAX_TOKEN &&
      PLATFORMS.includes(platform as string) &&
      (version === undefined || (typeof version === 'string' && version.length <= 100));
    if (!fits || Object.keys(unknown).length > 0)
      throw this.#ctx.problem('malformed', { detail: `Send { device_token, platform: ${PLATFORMS.join(' | ')}, app_version? }.` });
    return { token: token as string, platform: platform as string, version: version as string | undefined };
  }
}
