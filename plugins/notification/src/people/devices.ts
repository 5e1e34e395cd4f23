import type { Channel } from '../../contract/schema/send.ts';
import { type Device, DispatchFailure } from '../adapters/adapter.ts';
import type { Ctx } from '../context.ts';

const PLATFORMS: Readonly<Partial<Record<Channel, readonly Device['platform'][]>>> = { push: ['ios', 'android'], web_push: ['web'] };

/** On what a person wants to be reached: the devices of their live sessions, as the gateway knows them (GWY-045; G-BFF-10). */
export class Devices {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /**
   * The devices that a channel reaches; nothing for a channel that goes to an address. Throws a {@link DispatchFailure} while they cannot
   * be asked for.
   */
  async of(
    channel: Channel,
    { env_id, user_id }: { readonly env_id: string; readonly user_id: string },
    signal: AbortSignal,
  ): Promise<readonly Device[] | undefined> {
    const reached = PLATFORMS[channel];
    if (!reached) return undefined;
    // Invited, and not here yet.
    if (user_id.startsWith('email:')) return [];
    try {
      const { devices } = await this.#ctx.services.gateway.pushDevices({ body: { env_id, user_id }, signal });
      return devices.flatMap(({ platform, device_token: token }) => (reached.includes(platform) ? [{ platform, token }] : []));
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'the devices of a person could not be asked for; the delivery is tried again');
      throw new DispatchFailure('the devices of the person could not be asked for');
    }
  }
}
