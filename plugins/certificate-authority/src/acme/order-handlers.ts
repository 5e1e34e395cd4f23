import { SYSTEM } from '@platform/sdk';
import type { Announcer } from '../announcer.ts';
import type { CertificateStore } from '../certificates/certificate-store.ts';
import type { Ctx } from '../context.ts';
import { classify, type Identifier } from '../issuance/identifiers.ts';
import type { Issuance } from '../issuance/issuance.ts';
import type { PlatformNames } from '../issuance/platform-names.ts';
import { Turns } from '../store/turns.ts';
import type { UpstreamRelay } from '../upstream/upstream-relay.ts';
import { type AcmeRequest, type Answer, isPrivateSource, type OfAccount } from './acme-door.ts';
import type { Finalize } from './finalize.ts';
import { authorizationBody, challengeBody, challengeUp, orderBody, orderUrl } from './order-view.ts';
import { type Authorization, isWildcard, type Order, Orders } from './orders.ts';
import { renewalCertificate } from './renewal.ts';
import { BadJws, readBytes } from './signed-request.ts';

const DAY_MS = 86_400_000;
const PLACE = /^([0-9a-f-]{36})\.(\d{1,2})$/;

export interface OrderParts {
  readonly orders: Orders;
  readonly store: CertificateStore;
  readonly issuance: Issuance;
  readonly finalize: Finalize;
  readonly names: PlatformNames;
  readonly announcer: Announcer;
  readonly relay: UpstreamRelay | undefined;
  readonly suffixes: readonly string[];
}

/**
 * Orders, authorizations and challenges (RFC 8555, 7.4 and 7.5). The holder of an order's account changes it; who knows its address may
 * look (C20).
 */
export class OrderHandlers {
  readonly #ctx: Ctx;
  readonly #parts: OrderParts;
  readonly #turns = new Turns();

  constructor(ctx: Ctx, parts: OrderParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** `POST /acme/new-order`. */
  async create(request: OfAccount): Promise<Answer> {
    const { account, payload = {}, origin } = request;
    const asked = identifiersOf(payload['identifiers']);
    const read = classify(asked, this.#parts.suffixes);
    if ('refused' in read) throw this.#ctx.problem(read.refused, { detail: read.detail });
    const { classification, identifiers } = read;
    if (classification === 'local') await this.#requireEntitled(request, identifiers);
    else if (!this.#parts.relay)
      throw this.#ctx.problem('rejected_identifier', {
        detail: `${identifiers[0]?.value} is not a name this authority signs, and no upstream authority is set.`,
      });
    const validity = this.#validity(payload);
    const replaces = this.#replaces(payload['replaces'], account.account_id);
    return this.#parts.issuance.admitted('/acme/new-order', async () => {
      const base = {
        order_id: this.#ctx.platform.newId(),
        account_id: account.account_id,
        classification,
        status: 'pending' as const,
        identifier: identifiers[0] as Identifier,
        identifiers,
        ...validity,
        ...(replaces ? { replaces: replaces.certid } : {}),
        created_at: this.#ctx.clock.now().toISOString(),
        expires: this.#parts.orders.expiry(),
        certificate_id: null,
      };
      const { relay, orders } = this.#parts;
      const order: Order =
        classification === 'external' && relay ? await relay.open(base) : { ...base, authorizations: identifiers.map(localAuthorization) };
      await orders.put(order);
      if (replaces) this.#parts.store.setReplaced(replaces.id);
      this.#parts.announcer.tell('platform:acme:order:created', tx =>
        tx.emit('platform:acme:order:created', SYSTEM.envId, {
          order_id: order.order_id,
          account_id: account.account_id,
          classification,
          domain: order.identifier.value,
        }),
      );
      return { status: 201, headers: { location: orderUrl(order, origin) }, body: orderBody(order, origin) };
    });
  }

  async look({ params, origin }: AcmeRequest): Promise<Answer> {
    const order = await this.#order(params['id'] as string);
    return { headers: order.status === 'processing' ? { 'retry-after': '5' } : {}, body: orderBody(order, origin) };
  }

  async lookSigned(request: OfAccount): Promise<Answer> {
    this.#requireOwn(request, await this.#order(request.params['id'] as string));
    return this.look(request);
  }

  async authorization({ params, origin }: AcmeRequest): Promise<Answer> {
    const { order, index } = await this.#placed(params['id'] as string);
    return { body: authorizationBody(order, index, origin) };
  }

  /** A challenge, plainly asked for. */
  async authorizationOf({ params, origin }: AcmeRequest): Promise<Answer> {
    const { order, index } = await this.#placed(params['id'] as string);
    return { headers: { link: challengeUp(order, index, origin) }, body: challengeBody(order, index, origin) };
  }

  /** Asks, or gives the authorization up. */
  async authorizationSigned(request: OfAccount): Promise<Answer> {
    const { params, payload, origin } = request;
    this.#requireOwn(request, (await this.#placed(params['id'] as string)).order);
    if (payload === undefined || Object.keys(payload).length === 0) return this.authorization(request);
    if (payload['status'] !== 'deactivated')
      throw new BadJws('malformed_request', 'An authorization can be set to deactivated, and to nothing else.');
    return this.#changed(params['id'] as string, async (order, index) => {
      const { status } = order.authorizations[index] as Authorization;
      if (status !== 'pending' && status !== 'valid') throw new BadJws('malformed_request', `The authorization is ${status}.`);
      const next = withAuthorization({ ...order, status: order.status === 'valid' ? 'valid' : 'invalid' }, index, {
        status: 'deactivated',
      });
      await this.#parts.orders.put(next);
      return { body: authorizationBody(next, index, origin) };
    });
  }

  /** `POST /acme/challenge/{id}`: of a local name it holds at once (CA-016); of an external one the upstream is told to look. */
  async challenge(request: OfAccount): Promise<Answer> {
    const { params, payload, origin } = request;
    this.#requireOwn(request, (await this.#placed(params['id'] as string)).order);
    return this.#changed(params['id'] as string, async (order, index) => {
      const shown = (now: Order): Answer => ({
        headers: { link: challengeUp(now, index, origin) },
        body: challengeBody(now, index, origin),
      });
      const { challenge } = order.authorizations[index] as Authorization;
      // A client that only asks (POST-as-GET) sets nothing in motion.
      if (payload === undefined || challenge.status !== 'pending' || order.status !== 'pending') return shown(order);
      const { relay, orders } = this.#parts;
      if (order.classification === 'external') {
        if (!relay) throw this.#ctx.problem('upstream_failed', { detail: 'No upstream authority is set.' });
        const next = await relay.respond(order, index);
        await orders.put(next);
        return shown(next);
      }
      const valid = withAuthorization(order, index, {
        status: 'valid',
        challenge: { ...challenge, status: 'valid', validated: this.#ctx.clock.now().toISOString() },
      });
      const next: Order = { ...valid, status: valid.authorizations.every(({ status }) => status === 'valid') ? 'ready' : 'pending' };
      await orders.put(next);
      return shown(next);
    });
  }

  /** `POST /acme/order/{id}/finalize`. */
  async finalize(request: OfAccount): Promise<Answer> {
    const { params, payload, origin, account } = request;
    const id = params['id'] as string;
    this.#requireOwn(request, await this.#order(id));
    const csr = readBytes(payload?.['csr'], 'csr');
    return this.#turns.take(id, async () => {
      const order = await this.#parts.finalize.run(await this.#order(id), csr, account);
      return {
        headers: { location: orderUrl(order, origin), ...(order.status === 'processing' ? { 'retry-after': '5' } : {}) },
        body: orderBody(order, origin),
      };
    });
  }

  /** Local names are for private sources and workloads, platform names for the workload that owns them (H-01, G-ACME-06). */
  async #requireEntitled({ peer, ip }: AcmeRequest, identifiers: readonly Identifier[]): Promise<void> {
    if (peer) await this.#ctx.auth.verify({ headers: {}, peer });
    if (!peer && !isPrivateSource(ip))
      throw this.#ctx.problem('not_authorized', {
        detail: 'Local names are signed for private networks and workloads of the platform only.',
      });
    const taken = identifiers.find(
      ({ type, value }) => type === 'dns' && this.#parts.names.isReserved(value) && !(peer && this.#parts.names.owns(peer.workload, value)),
    );
    if (taken)
      throw this.#ctx.problem('not_authorized', {
        detail: `${taken.value} belongs to the platform: only the workload that answers on it gets a certificate for it.`,
      });
  }

  #validity(payload: Readonly<Record<string, unknown>>): { not_before?: string; not_after?: string } {
    const read = (member: string): Date | undefined => {
      const given = payload[member];
      if (given === undefined) return undefined;
      const at = typeof given === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(given) ? new Date(given) : new Date(Number.NaN);
      if (Number.isNaN(at.getTime())) throw new BadJws('malformed_request', `${member} is a time as RFC 3339 has it.`);
      return at;
    };
    const [from, until, now] = [read('notBefore'), read('notAfter'), this.#ctx.clock.now().getTime()];
    const latest = now + this.#ctx.config.leafDays * DAY_MS;
    if (
      (until && until.getTime() <= Math.max(now, from?.getTime() ?? 0)) ||
      (from && (from.getTime() < now - DAY_MS || from.getTime() > latest))
    )
      throw new BadJws('malformed_request', 'notBefore and notAfter name a time that is over, too far away or no time at all.');
    return {
      ...(from ? { not_before: from.toISOString() } : {}),
      ...(until ? { not_after: new Date(Math.min(until.getTime(), latest)).toISOString() } : {}),
    };
  }

  /** The certificate this order comes after (RFC 9773, 5). */
  #replaces(certid: unknown, accountId: string): { id: string; certid: string } | undefined {
    if (certid === undefined) return undefined;
    const meta = typeof certid === 'string' ? renewalCertificate(this.#parts.store, certid) : undefined;
    if (!meta || meta.account_id !== accountId) throw new BadJws('malformed_request', 'replaces names no certificate of this account.');
    if (this.#parts.store.isReplaced(meta.certificate_id))
      throw this.#ctx.problem('already_replaced', { detail: 'Another order already replaces this certificate.' });
    return { id: meta.certificate_id, certid: certid as string };
  }

  async #changed(place: string, change: (order: Order, index: number) => Promise<Answer>): Promise<Answer> {
    const { order: seen } = await this.#placed(place);
    return this.#turns.take(seen.order_id, async () => {
      const { order, index } = await this.#placed(place);
      return change(order, index);
    });
  }

  async #order(id: string): Promise<Order> {
    const order = await this.#current(id);
    if (!order) throw this.#ctx.problem('order_not_found');
    return order;
  }

  async #placed(place: string): Promise<{ order: Order; index: number }> {
    const [, id, at] = PLACE.exec(place) ?? [];
    const order = id === undefined ? undefined : await this.#current(id);
    if (!order || !order.authorizations[Number(at)]) throw this.#ctx.problem('order_not_found');
    return { order, index: Number(at) };
  }

  /** An external order that is being proven is looked for upstream; when that fails, it is shown as it was. */
  async #current(id: string): Promise<Order | undefined> {
    const { orders, relay } = this.#parts;
    const order = await orders.get(id);
    if (!relay || order?.status !== 'pending' || !order.authorizations.some(({ challenge }) => challenge.status === 'processing'))
      return order;
    const now = await relay.refresh(order).catch(() => order);
    // A finalize may have come meanwhile.
    if (now !== order && (await orders.get(id))?.status === 'pending') await orders.put(now);
    return now;
  }

  #requireOwn({ account }: OfAccount, order: Order): void {
    if (order.account_id !== account.account_id) throw new BadJws('not_authorized', 'The order is another account’s.');
  }
}

export function withAuthorization(order: Order, index: number, change: Partial<Authorization>): Order {
  return {
    ...order,
    authorizations: order.authorizations.map((authorization, at) => (at === index ? { ...authorization, ...change } : authorization)),
  };
}

const localAuthorization = (identifier: Identifier): Authorization => ({
  identifier,
  wildcard: isWildcard(identifier),
  status: 'pending',
  challenge: { token: Orders.token(), status: 'pending' },
});

function identifiersOf(given: unknown): { type: string; value: string }[] {
  if (
    !Array.isArray(given) ||
    !given.every(each => typeof each === 'object' && each !== null && typeof each.type === 'string' && typeof each.value === 'string')
  )
    throw new BadJws('malformed_request', 'identifiers is a list of objects with type and value.');
  return given as { type: string; value: string }[];
}
