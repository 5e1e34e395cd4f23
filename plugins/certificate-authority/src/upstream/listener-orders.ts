import { setTimeout as delay } from 'node:timers/promises';
import { BoundedMap, isProblem } from '@platform/sdk';
import type { CertificateStore } from '../certificates/certificate-store.ts';
import type { Ctx } from '../context.ts';
import type { Orders, Order } from '../acme/orders.ts';
import type { Identifier } from '../issuance/identifiers.ts';
import type { UpstreamRelay } from './upstream-relay.ts';

/** Listeners of the platform order by no account. */
const OWNER = 'platform';
const REFUSED_MS = 30_000;
const AT_ONCE = 16;
const STEPS = 30;
const TRIES = 10;
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 5_000;

/** External names of the platform's own listeners: an upstream certificate each, ordered when it is first asked for (C22, G-ACME-08). */
export class ListenerOrders {
  readonly #ctx: Ctx;
  readonly #parts: {
    readonly relay: UpstreamRelay;
    readonly orders: Orders;
    readonly store: CertificateStore;
    readonly signal: AbortSignal;
  };
  readonly #running = new Map<string, Promise<void>>();
  readonly #refused = new BoundedMap<string, number>(1_000);

  constructor(ctx: Ctx, parts: { relay: UpstreamRelay; orders: Orders; store: CertificateStore; signal: AbortSignal }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** The certificate with its key, `running` while an order is under way, or nothing where the name was refused lately. */
  async of(
    domain: string,
  ): Promise<{ certificate_id: string; chain_pem: string; key_pem: string; not_after: string } | 'running' | undefined> {
    const { store } = this.#parts;
    const now = this.#ctx.clock.now();
    const meta = store.upstreamFor(domain, now);
    const due = !meta || now.getTime() > Date.parse(meta.not_before) + ((Date.parse(meta.not_after) - Date.parse(meta.not_before)) * 2) / 3;
    if (due && (this.#refused.get(domain) ?? 0) <= now.getTime()) this.#start(domain);
    const [chain, key] = meta ? [await store.chain(meta.certificate_id), await store.key(meta.certificate_id)] : [];
    if (meta && chain !== undefined && key !== undefined)
      return { certificate_id: meta.certificate_id, chain_pem: chain, key_pem: key, not_after: meta.not_after };
    return this.#running.has(domain) ? 'running' : undefined;
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  #start(domain: string): void {
    if (this.#running.has(domain) || this.#running.size >= AT_ONCE) return;
    const run = this.#order(domain)
      .catch(error => {
        this.#refused.set(domain, this.#ctx.clock.now().getTime() + REFUSED_MS);
        this.#ctx.log.warn({ domain, err: error }, 'no upstream certificate for a name');
      })
      .finally(() => this.#running.delete(domain));
    this.#running.set(domain, run);
  }

  /** What may succeed later is tried again, for about half a minute: nobody else does, for an order of our own. */
  async #insist<T>(step: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await step();
      } catch (error) {
        if (tries >= TRIES || this.#parts.signal.aborted || !isProblem(error) || error.retry !== 'later') throw error;
        await delay(Math.min(FIRST_PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS), undefined, { signal: this.#parts.signal }).catch(
          () => undefined,
        );
      }
    }
  }

  async #order(domain: string): Promise<void> {
    const { relay, orders } = this.#parts;
    const identifier: Identifier = { type: 'dns', value: domain };
    const draft = {
      order_id: this.#ctx.platform.newId(),
      account_id: OWNER,
      classification: 'external' as const,
      status: 'pending' as const,
      identifier,
      identifiers: [identifier],
      created_at: this.#ctx.clock.now().toISOString(),
      expires: orders.expiry(),
      certificate_id: null,
    };
    let order: Order = await this.#insist(() => relay.open(draft));
    const save = async (next: Order) => {
      order = next;
      await orders.put(next);
    };
    await save(order);
    if (order.status === 'pending') await save(await this.#insist(() => relay.respond(order, 0)));
    await save({ ...order, status: 'processing' });
    for (let step = 0; step < STEPS; step += 1) {
      const done = await this.#insist(() => relay.complete(order, save));
      if (done.certificate) return save({ ...done.order, status: 'valid', certificate_id: done.certificate.certificate_id });
      if (done.order.status === 'invalid') throw new Error(done.order.error?.detail ?? 'the upstream authority gave the order up');
    }
    throw new Error('the upstream authority did not end the order');
  }
}
