import type { Ctx } from '../context.ts';
import { type Adapter, DispatchFailure, type GatewaySettings, type Outgoing } from './adapter.ts';
import { httpRelay } from './http-relay.ts';
import { Smtp, type SmtpOptions } from './smtp.ts';
import { stub } from './stub.ts';

/** The seam that everything leaves through: the gateway decides which adapter it is (NTF-021, NTF-022). */
export class Adapters {
  readonly #ctx: Ctx;
  readonly #smtp: Smtp;

  constructor(ctx: Ctx, options: Partial<SmtpOptions> = {}) {
    this.#ctx = ctx;
    this.#smtp = ctx.own(new Smtp({ now: () => ctx.clock.now().getTime(), ...options }));
  }

  of({ channel, gateway_url }: Pick<GatewaySettings, 'channel' | 'gateway_url'>): Adapter {
    if (channel !== 'email' || gateway_url === null) return stub(channel, this.#ctx.log);
    return /^smtps?:/.test(gateway_url) ? this.#smtp : httpRelay;
  }

  /** Dispatches once. The secret is read now, and wiped when the try has ended; without one the try goes on (NTF-016 to NTF-020). */
  async dispatch(outgoing: Outgoing, gateway: GatewaySettings, signal: AbortSignal): Promise<void> {
    const { simulate_failure: simulated } = gateway.config;
    if (simulated && (simulated.mode === 'always' || outgoing.tries < (simulated.n ?? 1)))
      throw new DispatchFailure(simulated.error ?? 'simulated failure');
    const settings = { ...gateway, config: { ...gateway.config, from: gateway.config.from ?? `no-reply@${this.#ctx.platform.domain}` } };
    const secret = gateway.secret_ref === null ? undefined : await this.#ctx.secrets.read(gateway.secret_ref);
    if (gateway.secret_ref !== null && secret === undefined)
      this.#ctx.log.warn({ gateway_id: gateway.gateway_id }, 'the credentials of a gateway could not be resolved; it is tried without');
    try {
      await this.of(gateway).dispatch(outgoing, settings, secret, signal);
    } finally {
      secret?.fill(0);
    }
  }

  sweep(): void {
    this.#smtp.sweep();
  }
}
