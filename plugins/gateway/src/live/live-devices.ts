import type { RequestOf, SealedBox } from '@platform/sdk';
import type { gateway } from '../../contract/index.ts';
import type { Ctx } from '../context.ts';
import type { SessionRecord, SessionStore } from '../session/session-store.ts';
import type { KeptDevice } from './push-devices.ts';
import { pushKey } from '../session/push-key.ts';

const MOST = 100;
/** Sessions whose devices are read in one round trip: twenty tokens of 4 KiB each at most. */
const AT_ONCE = 25;

/**
 * The devices of a person's live sessions, for the service that notifies (GWY-045; G-BFF-10). Their tokens are opened here and nowhere
 * else.
 */
export class LiveDevices {
  readonly #ctx: Ctx;
  readonly #store: SessionStore;
  readonly #box: SealedBox;

  constructor(ctx: Ctx, store: SessionStore) {
    this.#ctx = ctx;
    this.#store = store;
    this.#box = ctx.keys.sessions;
  }

  /** Devices of the newest sessions first, each once, at most a hundred. */
  async of({ body: { env_id: envId, user_id: userId } }: Pick<RequestOf<typeof gateway, 'pushDevices'>, 'body'>) {
    const sessions = (await this.#store.ofUser(userId)).filter(({ env_id, auth_env }) => env_id === envId || auth_env === envId);
    const devices = new Map<string, { push_id: string; platform: KeptDevice['platform']; device_token: string }>();
    for (let from = 0; from < sessions.length && devices.size < MOST; from += AT_ONCE) {
      for (const device of await this.#ofSessions(sessions.slice(from, from + AT_ONCE))) {
        const name = `${device.platform} ${device.device_token}`;
        if (devices.size < MOST && !devices.has(name)) devices.set(name, device);
      }
    }
    return { devices: [...devices.values()] };
  }

  /** A session that was revoked where it came from counts no more, although nobody may have ended it here yet (H-10). */
  async #ofSessions(sessions: readonly SessionRecord[]) {
    const answers = await this.#ctx.kv.pipeline(
      sessions.flatMap(({ sid, session_id_hash: hash }) => [
        ['EXISTS', `revoked:sid:${sid}`],
        ['HVALS', pushKey(hash)],
      ]),
    );
    for (const answer of answers) if (answer instanceof Error) throw answer;
    return sessions.flatMap(({ session_id_hash: hash }, index) =>
      Number(answers[2 * index]) === 1 ? [] : this.#opened(hash, answers[2 * index + 1] as string[]),
    );
  }

  #opened(hash: string, kept: readonly string[]) {
    return kept.flatMap(text => {
      const { push_id, platform, token_enc } = JSON.parse(text) as KeptDevice;
      const token = this.#box.open(pushKey(hash), token_enc);
      // Sealed under a key that is gone: the device registers anew with its next session.
      return token === undefined ? [] : [{ push_id, platform, device_token: token }];
    });
  }
}
