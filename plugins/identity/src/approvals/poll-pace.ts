import { createHash } from 'node:crypto';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Ctx } from '../context.ts';

/** Seconds between two polls, and what each one that comes too early adds (RFC 8628 3.5, CIBA 11; G-AUTH-03). */
export const INTERVAL_S = 5;
const KEPT_S = 700;
/** A poll that is on time by the client's clock must not be early by ours. */
const GRACE_MS = 250;

/** Tells clients how often to ask, and slows down those who ask more often: a pace that grows (RFC 8628, 3.5), and no `ctx.limit`. */
export class PollPace {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async answer(context: KoaContextWithOIDC): Promise<void> {
    const { oidc } = context;
    const body = context.body as Record<string, unknown> | undefined;
    if (!oidc || typeof body !== 'object' || body === null) return;
    if (context.status === 200 && (oidc.route === 'device_authorization' || oidc.route === 'backchannel_authentication'))
      body['interval'] = INTERVAL_S;
    const handle = oidc.params?.['device_code'] ?? oidc.params?.['auth_req_id'];
    if (body['error'] !== 'authorization_pending' || typeof handle !== 'string' || !(await this.#early(handle))) return;
    body['error'] = 'slow_down';
    body['error_description'] = 'ask less often: every answer like this adds five seconds to the interval';
  }

  async #early(handle: string): Promise<boolean> {
    const key = `auth:poll:${createHash('sha256').update(handle).digest('base64url')}`;
    const now = this.#ctx.clock.now().getTime();
    try {
      const [last = '', interval = ''] = String((await this.#ctx.kv.call('GET', key)) ?? '').split(' ');
      const wait = Number(interval) || INTERVAL_S;
      const early = last !== '' && now - Number(last) < wait * 1_000 - GRACE_MS;
      await this.#ctx.kv.call('SET', key, `${now} ${early ? wait + INTERVAL_S : wait}`, 'EX', KEPT_S);
      return early;
    } catch (error) {
      // Pace is a courtesy between honest parties: without the store a poll is answered as it is.
      this.#ctx.log.warn({ err: error }, 'the pace of polls is not known');
      return false;
    }
  }
}
