import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import * as x509 from '@peculiar/x509';
import { ProblemError } from '@platform/sdk';
import type { Authorization, Challenge, Order } from '../acme/orders.ts';
import { isWildcard } from '../acme/orders.ts';
import type { CertificateMeta, CertificateStore } from '../certificates/certificate-store.ts';
import type { Ctx } from '../context.ts';
import type { Issuance } from '../issuance/issuance.ts';
import type { UpstreamAccount } from './upstream-account.ts';
import { type UpstreamClient, UpstreamFailed, UpstreamRefused } from './upstream-client.ts';

const POLL_MS = 2_000;
const LONGEST_POLL_MS = 10_000;
const DEADLINE_MS = 90_000;
const AT_ONCE = 16;
const MAX_PEM = 200_000;
const P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

interface RelayParts {
  readonly client: UpstreamClient;
  readonly account: UpstreamAccount;
  readonly store: CertificateStore;
  readonly issuance: Issuance;
  /** Ends waiting when the service stops. */
  readonly signal: AbortSignal;
  readonly pollMs?: number;
}
type Draft = Omit<Order, 'authorizations'>;
type Save = (order: Order) => Promise<void>;

/**
 * External orders, carried to the upstream authority by requests of our own: nothing the caller sent is passed on but the names (CA-022).
 * Each step that was reached is kept, so that the same call goes on from there after a failure.
 */
export class UpstreamRelay {
  readonly #ctx: Ctx;
  readonly #parts: RelayParts;
  #underWay = 0;

  constructor(ctx: Ctx, parts: RelayParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** What the upstream wants to read at `/.well-known/acme-challenge/{token}`: by the key of the platform's own account. */
  keyAuthorization(token: string): string {
    return `${token}.${this.#parts.account.thumbprint}`;
  }

  /** Opens an upstream order; its tokens become those of the caller's challenges. */
  open(draft: Draft): Promise<Order> {
    return this.#told(async () => {
      const made = await this.#parts.client.newOrder(draft.identifiers);
      const { authorizations, finalize } = made.body as { authorizations?: unknown; finalize?: unknown };
      if (
        made.location === undefined ||
        typeof finalize !== 'string' ||
        !Array.isArray(authorizations) ||
        authorizations.length !== draft.identifiers.length
      )
        throw new UpstreamFailed('the upstream order is incomplete');
      const read = await Promise.all(authorizations.map(url => this.#authorization(String(url))));
      const ordered = draft.identifiers.map(identifier => {
        const found = read.find(({ value }) => value === identifier.value);
        if (!found) throw new UpstreamFailed('the upstream order names other identifiers');
        return { identifier, wildcard: isWildcard(identifier), status: found.status, challenge: found.challenge, upstream: found.upstream };
      });
      return settled({ ...draft, authorizations: ordered, upstream: { url: made.location, finalize } });
    });
  }

  /** Tells the upstream to look at one challenge. */
  respond(order: Order, index: number): Promise<Order> {
    return this.#told(async () => {
      const { upstream, challenge } = order.authorizations[index] as Authorization;
      if (!upstream) throw new UpstreamFailed('the authorization is not known upstream');
      await this.#parts.client.post(upstream.challenge, {});
      return withStates(order, new Map([[index, { status: 'pending', challenge: { ...challenge, status: 'processing' } }]]));
    });
  }

  /** The order with the states that its authorizations have upstream by now. */
  refresh(order: Order): Promise<Order> {
    return this.#told(async () => {
      const states = new Map<number, Pick<Authorization, 'status' | 'challenge'>>();
      for (const [index, { upstream, challenge }] of order.authorizations.entries()) {
        if (!upstream || challenge.status !== 'processing') continue;
        const now = await this.#authorization(upstream.authorization);
        if (now.status !== 'pending') states.set(index, { status: now.status, challenge: { ...now.challenge, token: challenge.token } });
      }
      return states.size === 0 ? order : withStates(order, states);
    });
  }

  /** From proven names to a certificate, waiting at most 90 s; then the order is still processing, and the next call goes on. */
  async complete(order: Order, save: Save): Promise<{ order: Order; certificate?: CertificateMeta }> {
    if (this.#underWay >= AT_ONCE) throw this.#ctx.problem('mint_queue_full', { headers: { 'retry-after': '30' } });
    this.#underWay += 1;
    try {
      return await this.#told(() => this.#complete(order, save));
    } finally {
      this.#underWay -= 1;
    }
  }

  async #complete(started: Order, save: Save): Promise<{ order: Order; certificate?: CertificateMeta }> {
    const { client, signal, pollMs = POLL_MS } = this.#parts;
    const until = performance.now() + DEADLINE_MS;
    let order = started;
    for (;;) {
      const { url, finalize, certificate } = order.upstream as NonNullable<Order['upstream']>;
      if (certificate !== undefined) return { order, certificate: await this.#fetch(order, certificate) };
      const answer = await client.post(url);
      const { status, certificate: place, error } = answer.body as { status?: string; certificate?: string; error?: Order['error'] };
      if (status === 'valid' && place !== undefined) {
        // Kept before it is fetched: a download that fails is tried again and orders nothing anew (CA-057).
        order = { ...order, upstream: { url, finalize, certificate: place } };
        await save(order);
        continue;
      }
      if (status === 'invalid') {
        order = {
          ...(await this.refresh(order)),
          status: 'invalid',
          error: error ?? { type: 'urn:ietf:params:acme:error:unauthorized', detail: 'The upstream authority gave the order up.' },
        };
        await save(order);
        return { order };
      }
      if (status === 'ready') await client.post(finalize, { csr: await this.#csr(order) });
      if (performance.now() > until || signal.aborted) return { order };
      const asked = answer.retryAfterS === undefined || pollMs < POLL_MS ? pollMs : answer.retryAfterS * 1_000;
      await delay(Math.min(asked, LONGEST_POLL_MS), undefined, { signal }).catch(() => undefined);
    }
  }

  /** Of a key of our own, on disk before anybody signs it (CA-026): a repeat asks with the same one. */
  async #csr({ order_id: id, identifiers }: Order): Promise<string> {
    const kept = await this.#parts.store.pendingKey(id);
    const keys = kept ? await importKeys(kept) : ((await crypto.subtle.generateKey(P256, true, ['sign', 'verify'])) as CryptoKeyPair);
    if (!kept) await this.#parts.store.keepPendingKey(id, await exportKey(keys.privateKey));
    const names = new x509.SubjectAlternativeNameExtension(identifiers.map(({ type, value }) => ({ type, value })));
    const request = await x509.Pkcs10CertificateRequestGenerator.create({ name: '', keys, signingAlgorithm: P256, extensions: [names] });
    return Buffer.from(request.rawData).toString('base64url');
  }

  async #fetch(order: Order, url: string): Promise<CertificateMeta> {
    const { text } = await this.#parts.client.post(url);
    const key = await this.#parts.store.pendingKey(order.order_id);
    const leaf = readLeaf(text);
    if (!leaf || key === undefined) throw new UpstreamFailed('what the upstream authority sent is no certificate of ours');
    const names = order.identifiers.map(({ type, value }) => `${type}:${value}`);
    if (!order.identifiers.every(({ value }) => leaf.checkHost(value) !== undefined))
      throw new UpstreamFailed('the upstream certificate names others');
    const meta = await this.#parts.issuance.keep(
      {
        chain: text,
        serial: leaf.serialNumber.toLowerCase(),
        thumbprint: Buffer.from(leaf.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url'),
        notBefore: new Date(leaf.validFrom),
        notAfter: new Date(leaf.validTo),
      },
      {
        domain: order.identifier.value,
        names,
        kind: 'leaf',
        source: 'upstream',
        accountId: order.account_id,
        key,
        by: `account:${order.account_id}`,
      },
    );
    await this.#parts.store.dropPendingKey(order.order_id);
    return meta;
  }

  async #authorization(url: string): Promise<{
    value: string;
    status: Authorization['status'];
    challenge: Challenge;
    upstream: { authorization: string; challenge: string };
  }> {
    const { body } = await this.#parts.client.post(url);
    const { identifier, status, challenges } = body as {
      identifier?: { value?: string };
      status?: Authorization['status'];
      challenges?: { type?: string; url?: string; token?: string; status?: Challenge['status']; error?: Challenge['error'] }[];
    };
    const http = challenges?.find(({ type }) => type === 'http-01');
    if (
      !identifier?.value ||
      !status ||
      typeof http?.token !== 'string' ||
      typeof http.url !== 'string' ||
      !/^[A-Za-z0-9_-]{16,128}$/.test(http.token)
    )
      throw new UpstreamFailed('the upstream authority offers no HTTP-01 challenge');
    const state = http.status ?? 'pending';
    return {
      value: identifier.value,
      status,
      challenge: { token: http.token, status: state, ...(http.error ? { error: http.error } : {}) },
      upstream: { authorization: url, challenge: http.url },
    };
  }

  /** What went wrong upstream, in this service's words: its refusals with their own type, everything else as 502. */
  async #told<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof UpstreamFailed)
        throw this.#ctx.problem('upstream_failed', { detail: `${error.message}. Try again.`, cause: error });
      if (!(error instanceof UpstreamRefused)) throw error;
      const { type, title, status, retry } = this.#ctx.problem('upstream_refused');
      throw new ProblemError(
        'acme',
        'upstream_refused',
        { status, title, retry, type: error.problem.type?.startsWith('urn:ietf:params:acme:error:') ? error.problem.type : type },
        {
          detail: `The upstream authority refused: ${error.message.slice(0, 500)}`,
          extra: { upstream: error.problem },
          ...(error.retryAfter === undefined ? {} : { headers: { 'retry-after': error.retryAfter } }),
        },
      );
    }
  }
}

function withStates(order: Order, states: ReadonlyMap<number, Pick<Authorization, 'status' | 'challenge'>>): Order {
  return settled({
    ...order,
    authorizations: order.authorizations.map((authorization, index) => ({ ...authorization, ...states.get(index) })),
  });
}

/** An order is ready when all of it is proven, and lost when any of it is. */
function settled(order: Order): Order {
  if (order.status !== 'pending') return order;
  if (order.authorizations.some(({ status }) => status === 'invalid' || status === 'deactivated')) {
    const error = order.authorizations.find(({ challenge }) => challenge.error)?.challenge.error;
    return { ...order, status: 'invalid', ...(error ? { error } : {}) };
  }
  return order.authorizations.every(({ status }) => status === 'valid') ? { ...order, status: 'ready' } : order;
}

function readLeaf(pem: string): X509Certificate | undefined {
  if (pem.length > MAX_PEM) return undefined;
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

const exportKey = async (key: CryptoKey): Promise<string> =>
  x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');

async function importKeys(pem: string): Promise<CryptoKeyPair> {
  const privateKey = await crypto.subtle.importKey('pkcs8', x509.PemConverter.decodeFirst(pem), P256, true, ['sign']);
  const { d: _d, key_ops: _ops, ...jwk } = await crypto.subtle.exportKey('jwk', privateKey);
  return { privateKey, publicKey: await crypto.subtle.importKey('jwk', { ...jwk, key_ops: ['verify'] }, P256, true, ['verify']) };
}
