import type { Orders } from '../acme/orders.ts';
import type { CertificateStore } from '../certificates/certificate-store.ts';
import type { Ctx } from '../context.ts';
import type { Issuance } from '../issuance/issuance.ts';
import { ListenerOrders } from './listener-orders.ts';
import { UpstreamRelay } from './upstream-relay.ts';
import { UpstreamAccount } from './upstream-account.ts';
import { UpstreamClient } from './upstream-client.ts';

/** The way to the upstream authority; none where the settings name none (CA-018, CA-019). Waits end with the plugin. */
export async function openUpstream(
  ctx: Ctx,
  parts: { store: CertificateStore; issuance: Issuance; orders: Orders },
): Promise<{ relay: UpstreamRelay; listeners: ListenerOrders } | undefined> {
  const { upstreamDirectoryUrl: directoryUrl, upstreamContact: contact, upstreamCaPem: caPem } = ctx.config;
  if (directoryUrl === '') return undefined;
  const account = await UpstreamAccount.open(ctx.platform.dataDir, directoryUrl);
  const client = ctx.own(new UpstreamClient({ directoryUrl, account, contact, caPem }));
  const stopping = new AbortController();
  ctx.own({ [Symbol.dispose]: () => stopping.abort() });
  const relay = new UpstreamRelay(ctx, { client, account, store: parts.store, issuance: parts.issuance, signal: stopping.signal });
  return { relay, listeners: new ListenerOrders(ctx, { relay, orders: parts.orders, store: parts.store, signal: stopping.signal }) };
}
