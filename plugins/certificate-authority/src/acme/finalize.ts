import { createPublicKey } from 'node:crypto';
import { SYSTEM } from '@platform/sdk';
import type { Announcer } from '../announcer.ts';
import type { CertificateMeta } from '../certificates/certificate-store.ts';
import type { Ctx } from '../context.ts';
import { classify } from '../issuance/identifiers.ts';
import type { Issuance } from '../issuance/issuance.ts';
import type { UpstreamRelay } from '../upstream/upstream-relay.ts';
import type { Account, Accounts } from './accounts.ts';
import { hashOf, type Order, type Orders } from './orders.ts';

const LONGEST_CN = 64;

export interface FinalizeParts {
  readonly orders: Orders;
  readonly accounts: Accounts;
  readonly issuance: Issuance;
  readonly announcer: Announcer;
  readonly relay: UpstreamRelay | undefined;
  readonly suffixes: readonly string[];
}

/**
 * The last step of an order: what it asks for is classified again, the request must name exactly that, and then it is signed, or fetched
 * from upstream.
 */
export class Finalize {
  readonly #ctx: Ctx;
  readonly #parts: FinalizeParts;

  constructor(ctx: Ctx, parts: FinalizeParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async run(order: Order, csr: Buffer, account: Account): Promise<Order> {
    const csrHash = hashOf(csr);
    // C46: of an external order a repeat goes on, with the same request.
    const proving = order.status === 'pending' && order.authorizations.every(({ challenge }) => challenge.status !== 'pending');
    const goesOn = order.classification === 'external' && (proving || (order.status === 'processing' && order.csr_sha256 === csrHash));
    if (order.status !== 'ready' && !goesOn)
      throw this.#ctx.problem('order_not_ready', {
        detail: `The order is ${order.status}${order.status === 'processing' ? ', with another request' : ''}.`,
      });
    await this.#requireSameClass(order);
    const read = await this.#readCsr(csr, order, account);
    // What waits for the upstream holds no place of those who only want a signature (H-04).
    if (order.classification === 'external') return this.#relay(order, csrHash);
    return this.#parts.issuance.admitted('/acme/order/finalize', () => this.#sign(order, read, csrHash));
  }

  /** CA-020: settings may have changed since the order was made. */
  async #requireSameClass(order: Order): Promise<void> {
    const now = classify(order.identifiers, this.#parts.suffixes);
    if (!('refused' in now) && now.classification === order.classification) return;
    const error = { type: 'urn:ietf:params:acme:error:rejectedIdentifier', detail: 'The names of this order are of another class by now.' };
    await this.#parts.orders.put({ ...order, status: 'invalid', error });
    throw this.#ctx.problem('rejected_identifier', { detail: error.detail });
  }

  async #readCsr(csr: Buffer, order: Order, account: Account): Promise<{ csr: string; hierarchy: 'pq' | 'classical' }> {
    const pem = `-----BEGIN CERTIFICATE REQUEST-----\n${csr
      .toString('base64')
      .match(/.{1,64}/g)
      ?.join('\n')}\n-----END CERTIFICATE REQUEST-----\n`;
    const read = await this.#ctx.authority.readCsr(pem);
    if ('refused' in read) throw this.#ctx.problem('bad_csr', { detail: read.refused });
    const wanted = new Set(order.identifiers.map(({ type, value }) => `${type}:${value}`));
    const named = new Set(read.names.map(spelt));
    const common =
      read.commonName === undefined || read.commonName === ''
        ? undefined
        : classify([{ type: 'dns', value: read.commonName }], this.#parts.suffixes);
    if (common) named.add('refused' in common ? 'refused' : `${common.identifiers[0]?.type}:${common.identifiers[0]?.value}`);
    if (named.size !== wanted.size || ![...named].every(name => wanted.has(name)))
      throw this.#ctx.problem('bad_csr', { detail: 'The request names other identifiers than the order.' });
    if (createPublicKey(read.publicKeyPem).equals(this.#parts.accounts.keyOf(account)))
      throw this.#ctx.problem('bad_csr', { detail: 'The key of the request is that of the account. Take another one.' });
    return { csr: pem, hierarchy: read.hierarchy };
  }

  async #sign(order: Order, { csr, hierarchy }: { csr: string; hierarchy: 'pq' | 'classical' }, csrHash: string): Promise<Order> {
    const names = order.identifiers.map(({ type, value }) => `${type}:${value}`);
    const common = order.identifiers.find(({ value }) => value.length <= LONGEST_CN)?.value ?? `order ${order.order_id}`;
    const { leafDays } = this.#ctx.config;
    const { meta } = await this.#parts.issuance.issue(
      {
        hierarchy,
        commonName: common,
        names,
        usages: ['server'],
        days: leafDays,
        csr,
        ...(order.not_before ? { notBefore: new Date(order.not_before) } : {}),
        ...(order.not_after ? { notAfter: new Date(order.not_after) } : {}),
      },
      { domain: order.identifier.value, names, kind: 'leaf', accountId: order.account_id, by: `account:${order.account_id}` },
    );
    return this.#ended(order, meta, csrHash);
  }

  /** Keeps what it reached before it tells of a failure, so that the next finalize goes on from there (CA-057, CA-096). */
  async #relay(order: Order, csrHash: string): Promise<Order> {
    const { relay, orders } = this.#parts;
    if (!relay) throw this.#ctx.problem('upstream_failed', { detail: 'No upstream authority is set.' });
    let reached: Order = { ...order, status: 'processing', csr_sha256: csrHash };
    await orders.put(reached);
    const done = await relay.complete(reached, async next => {
      reached = next;
      await orders.put(next);
    });
    return done.certificate ? this.#ended(done.order, done.certificate, csrHash) : done.order;
  }

  async #ended(order: Order, { certificate_id, serial, not_after }: CertificateMeta, csrHash: string): Promise<Order> {
    const ended: Order = { ...order, status: 'valid', certificate_id, csr_sha256: csrHash };
    await this.#parts.orders.put(ended);
    this.#parts.announcer.tell('platform:acme:order:finalized', tx =>
      tx.emit('platform:acme:order:finalized', SYSTEM.envId, {
        order_id: order.order_id,
        certificate_id,
        serial,
        domain: order.identifier.value,
        not_after,
      }),
    );
    return ended;
  }
}

/** A name of a request in the spelling of an order's. */
function spelt(name: string): string {
  const [type = '', ...rest] = name.split(':');
  const value = rest.join(':').toLowerCase().replace(/\.$/, '');
  const read = type === 'dns' || type === 'ip' ? classify([{ type, value }], []) : undefined;
  const [identifier] = read && !('refused' in read) ? read.identifiers : [];
  return identifier ? `${identifier.type}:${identifier.value}` : `${type}:${value}`;
}
