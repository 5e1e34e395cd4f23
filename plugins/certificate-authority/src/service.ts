import { createHash } from 'node:crypto';
import { type RawExchange, reply } from '@platform/sdk';
import { AccountHandlers } from './acme/account-handlers.ts';
import { Accounts } from './acme/accounts.ts';
import { AcmeDoor, type AcmeRequest } from './acme/acme-door.ts';
import { CertificateHandlers } from './acme/certificate-handlers.ts';
import { Finalize } from './acme/finalize.ts';
import { Nonces } from './acme/nonces.ts';
import { OrderHandlers } from './acme/order-handlers.ts';
import { Orders } from './acme/orders.ts';
import { Activity } from './activity.ts';
import { Announcer } from './announcer.ts';
import { Adoption } from './certificates/adoption.ts';
import { CertificateStore } from './certificates/certificate-store.ts';
import { Certificates } from './certificates/certificates.ts';
import { Revocation } from './certificates/revocation.ts';
import type { Ctx } from './context.ts';
import { Enrollment } from './issuance/enrollment.ts';
import { Issuance } from './issuance/issuance.ts';
import { Mint } from './issuance/mint.ts';
import { parseSuffixes } from './issuance/name-classification.ts';
import { PlatformNames } from './issuance/platform-names.ts';
import { Overview } from './overview.ts';
import { IssuanceLog } from './record/issuance-log.ts';
import { LogKeys } from './record/log-keys.ts';
import { verifyLog } from './record/log-verification.ts';
import { openUpstream } from './upstream/upstream.ts';

const TOKEN = /^[A-Za-z0-9_-]{16,128}$/;

/** The parts of the authority, each made once and in order. */
export async function openService(ctx: Ctx) {
  const { domain } = ctx.platform;
  const folder = (name: string) => ctx.files.directory(name);
  const now = () => ctx.clock.now();
  const suffixes = parseSuffixes(ctx.config.localDomains);
  const keys = await LogKeys.read(ctx.keys.log);
  const store = new CertificateStore(folder('certificates'));
  const record = ctx.own(new IssuanceLog(folder('issued'), { keys, now, log: ctx.log }));
  const [accounts, orders] = [new Accounts(folder('accounts')), new Orders(folder('orders'), () => now().getTime())];
  const issuance = new Issuance(ctx, store, record);
  const announcer = ctx.own(new Announcer(ctx));
  const names = new PlatformNames(domain, workload => hostsOf(ctx, workload));
  const revocation = new Revocation(ctx, { store, issuance, announcer });
  const upstream = await openUpstream(ctx, { store, issuance, orders });
  const relay = upstream?.relay;
  const door = new AcmeDoor(ctx, new Nonces(() => now().getTime()), accounts);
  const finalize = new Finalize(ctx, { orders, accounts, issuance, announcer, relay, suffixes });
  const adoption = new Adoption(ctx, store, issuance);
  const activity = new Activity(ctx, { accounts, orders, store, issuance });
  // Before a door opens: a certificate that is made while the log is not open would begin it anew.
  await record.open();
  await store.load();
  await accounts.load();
  await orders.load(token => relay?.keyAuthorization(token));
  return {
    acme: {
      door,
      accounts: new AccountHandlers(ctx, { accounts, orders, announcer }),
      orders: new OrderHandlers(ctx, { orders, store, issuance, finalize, names, announcer, relay, suffixes }),
      held: new CertificateHandlers(ctx, store, revocation),
      directory: async ({ origin }: AcmeRequest) => ({ body: directory(origin) }),
      challengeAnswer: async ({ params, request }: RawExchange) => {
        const token = params['token'] as string;
        const answer = (request.method === 'GET' || request.method === 'HEAD') && TOKEN.test(token) ? orders.answerTo(token) : undefined;
        return new Response(answer ?? 'no such challenge\n', {
          status: answer === undefined ? 404 : 200,
          headers: { 'content-type': answer === undefined ? 'text/plain' : 'application/octet-stream', 'cache-control': 'no-store' },
        });
      },
    },
    anchors: anchorsOf(ctx),
    mint: new Mint(ctx, { issuance, enrollment: new Enrollment(ctx), announcer, names, suffixes, upstream: upstream?.listeners }),
    certificates: new Certificates(ctx, store, revocation),
    overview: new Overview(ctx, { accounts, orders }),
    activity,
    log: { keys, verify: async () => proven(await verifyLog(record, keys, store)) },
    start: async () => {
      await adoption.run();
      await revocation.publish();
    },
    tick: async () => {
      await adoption.noted();
      activity.book();
      await revocation.publish();
    },
    forget: () => orders.forgetOld(),
  };
}

const proven = ({ faults, ...verdict }: Awaited<ReturnType<typeof verifyLog>>) => ({
  ...verdict,
  intact: faults.length === 0,
  faults: [...faults],
});

function hostsOf(ctx: Ctx, workload: string): readonly string[] {
  const manifest = ctx.catalog.manifests().find(({ id }) => id === workload);
  return manifest?.hosts ?? [];
}

function directory(origin: string): object {
  const at = (path: string) => `${origin}/acme/${path}`;
  return {
    newNonce: at('new-nonce'),
    newAccount: at('new-account'),
    newOrder: at('new-order'),
    revokeCert: at('revoke-cert'),
    keyChange: at('key-change'),
    renewalInfo: at('renewal-info'),
    meta: { website: origin, externalAccountRequired: false },
  };
}

function anchorsOf(ctx: Ctx) {
  const { pq, classical } = ctx.authority.anchors;
  return (part: 'root' | 'intermediate', alg: 'pq' | 'classical' | undefined) => {
    const text = alg === 'pq' ? pq[part] : alg === 'classical' ? classical[part] : pq[part] + classical[part];
    const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
    return reply(text, { headers: { 'content-type': 'application/x-pem-file', etag, 'cache-control': 'public, max-age=3600' } }) as never;
  };
}
