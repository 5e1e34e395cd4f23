import type { RequestOf } from '@platform/sdk';
import type { TestResult } from '../../contract/schema/gateway.ts';
import type { Adapters } from '../adapters/adapters.ts';
import { DispatchFailure, type GatewaySettings } from '../adapters/adapter.ts';
import { mailOf, type Written } from '../delivery/mail-of.ts';
import { isOneAddress } from '../people/mail-address.ts';
import type { Tenants } from '../people/tenants.ts';
import type { Contract, Ctx } from '../context.ts';
import type { Gateways } from './gateways.ts';

interface Tested {
  readonly recipient: string;
  readonly env: string;
  readonly written: Written;
  readonly signal: AbortSignal;
  readonly correlationId: string;
}

/** Smoke tests through the same seam as every message (NTF-049); a provider's refusal is an answer, not an error. */
export class GatewayTests {
  readonly #ctx: Ctx;
  readonly #gateways: Gateways;
  readonly #adapters: Adapters;
  readonly #tenants: Tenants;

  constructor(ctx: Ctx, parts: { gateways: Gateways; adapters: Adapters; tenants: Tenants }) {
    this.#ctx = ctx;
    this.#gateways = parts.gateways;
    this.#adapters = parts.adapters;
    this.#tenants = parts.tenants;
  }

  async test({ body, env, caller, signal, correlationId }: RequestOf<Contract, 'testGateway'>): Promise<TestResult> {
    if ((body.gateway_id === undefined) === (body.gateway === undefined))
      throw this.#ctx.problem('gateway_invalid', { detail: 'Name gateway_id, or describe one in gateway.' });
    const settings = body.gateway_id
      ? await this.#gateways.find(this.#ctx.db.sql, body.gateway_id, env)
      : {
          ...(await this.#gateways.settingsOf(body.gateway as NonNullable<typeof body.gateway>, env, caller)),
          gateway_id: this.#ctx.platform.newId(),
          version: 0,
        };
    return this.through(settings, { recipient: body.recipient, env, written: wordsOf(body), signal, correlationId });
  }

  async one({ params, body, env, signal, correlationId }: RequestOf<Contract, 'tryGateway'>): Promise<TestResult> {
    const gateway = await this.#gateways.find(this.#ctx.db.sql, params.gateway_id, env);
    return this.through(gateway, { recipient: body.recipient, env, written: wordsOf(body), signal, correlationId });
  }

  async through(gateway: GatewaySettings, { recipient, env, written, signal, correlationId }: Tested): Promise<TestResult> {
    if (gateway.channel === 'email' && !isOneAddress(recipient))
      throw this.#ctx.problem('recipient_invalid', { detail: 'Write one e-mail address, without a name.' });
    const id = this.#ctx.platform.newId();
    const outgoing = mailOf({
      deliveryId: id,
      notificationId: id,
      envId: env,
      to: recipient,
      domain: this.#ctx.platform.domain,
      correlationId,
      tries: 0,
      written,
      look: await this.#tenants.look(env),
    });
    const adapter = this.#adapters.of(gateway).name;
    const began = performance.now();
    const latency = () => Math.round(performance.now() - began);
    try {
      await this.#adapters.dispatch(outgoing, gateway, signal);
      return { ok: true, adapter, latency_ms: latency() };
    } catch (error) {
      if (!(error instanceof DispatchFailure)) this.#ctx.log.warn({ err: error }, 'a test of a gateway failed in a way nobody foresaw');
      return { ok: false, adapter, latency_ms: latency(), error: error instanceof DispatchFailure ? error.message : 'the adapter failed' };
    }
  }
}

const wordsOf = ({ subject, body }: { subject?: string; body?: string }): Written => ({
  subject: subject ?? 'Test',
  body: body ?? 'This is a test of a gateway. Nothing is to be done.',
  content_type: 'text/plain',
  locale: 'en',
});
