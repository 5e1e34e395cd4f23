import { X509Certificate } from 'node:crypto';
import type { RequestOf } from '@platform/sdk';
import type { certificateAuthority } from '../contract/index.ts';
import type { Accounts } from './acme/accounts.ts';
import type { Order, Orders } from './acme/orders.ts';
import type { Ctx } from './context.ts';
import { MAX_CONCURRENT_MINTS, MAX_QUEUED_MINTS } from './issuance/mint-queue.ts';
import type { LogKeys } from './record/log-keys.ts';

type Contract = typeof certificateAuthority;

/** What the console shows of the authority itself, its accounts and its orders. */
export class Overview {
  readonly #ctx: Ctx;
  readonly #parts: { readonly accounts: Accounts; readonly orders: Orders };

  constructor(ctx: Ctx, parts: { accounts: Accounts; orders: Orders }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  hierarchies() {
    const { pq, classical } = this.#ctx.authority.anchors;
    const row = (name: string, role: string, pem: string) => {
      const certificate = new X509Certificate(pem);
      const { asymmetricKeyType = '', asymmetricKeyDetails } = certificate.publicKey;
      return {
        name,
        role,
        subject: certificate.subject.replaceAll('\n', ', '),
        algorithm: asymmetricKeyDetails?.namedCurve ?? asymmetricKeyType,
        serial: certificate.serialNumber.toLowerCase(),
        not_after: new Date(certificate.validTo).toISOString(),
        thumbprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
      };
    };
    return {
      items: [
        row('Post-quantum', 'Root', pq.root),
        row('Post-quantum', 'Intermediate', pq.intermediate),
        row('Classical', 'Root', classical.root),
        row('Classical', 'Intermediate', classical.intermediate),
      ],
    };
  }

  settings(keys: LogKeys) {
    const { config, platform } = this.#ctx;
    return {
      local_domains: config.localDomains || 'none beside localhost, .local and private addresses',
      leaf_days: config.leafDays,
      upstream: config.upstreamDirectoryUrl || 'none: external names are refused',
      upstream_contact: config.upstreamContact || 'none',
      queue: `${MAX_CONCURRENT_MINTS} at once, ${MAX_QUEUED_MINTS} waiting`,
      log_key: keys.current,
      directory: `${platform.publicOrigin(platform.host('acme'))}/acme/directory`,
    };
  }

  async accounts({ query }: RequestOf<Contract, 'listAccounts'>) {
    const { items, next_cursor } = await this.#ctx.page(query, { list: 'accounts', order: { account_id: 'id' } }, ({ after, limit }) =>
      this.#parts.accounts.newest(limit, after?.[0] as string | undefined),
    );
    return {
      items: items.map(({ account_id, status, contact, thumbprint, jwk, ip, created_at }) => ({
        account_id,
        status,
        contact: contact.join(', '),
        thumbprint,
        key: String(jwk.crv ?? jwk.alg ?? jwk.kty),
        ip,
        created_at,
      })),
      next_cursor,
    };
  }

  async orders({ query }: RequestOf<Contract, 'listOrders'>) {
    const { q, status, classification } = query;
    const wanted = q?.trim().toLowerCase();
    const fits = (order: Order) =>
      (status === undefined || order.status === status) &&
      (classification === undefined || order.classification === classification) &&
      (!wanted ||
        order.order_id === wanted ||
        order.account_id === wanted ||
        order.identifiers.some(({ value }) => value.includes(wanted)));
    const { items, next_cursor } = await this.#ctx.page(query, { list: 'orders', order: { order_id: 'id' } }, ({ after, limit }) =>
      this.#parts.orders.newest(limit, after?.[0] as string | undefined, fits),
    );
    return {
      items: items.map(
        ({
          order_id,
          account_id,
          identifier,
          identifiers,
          classification: of,
          status: is,
          error,
          created_at,
          expires,
          certificate_id,
        }) => ({
          order_id,
          account_id,
          domain: identifier.value,
          names: identifiers.length,
          classification: of,
          status: is,
          error: error?.detail ?? null,
          created_at,
          expires,
          certificate_id,
        }),
      ),
      next_cursor,
    };
  }
}
