import { randomBytes } from 'node:crypto';
import { createServer } from 'node:https';
import { createSecureContext } from 'node:tls';
import type { identity } from '@platform/identity/contract';
import registry from '@platform/registry/plugin';
import { HostIndex } from '../../../plugins/registry/src/resolver/host-index.ts';
import { as, boot, cacheOn, type Stubs } from '@platform/testing';

/** What the measuring process needs to call one of the two servers. */
export interface Server {
  readonly port: number;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly hostname: string;
}
/** CPU seconds this process used so far, all its threads. */
export type Cpu = number;
export type Asked = 'cpu' | { readonly lookups: number; readonly atOnce: number };

const BODY = {
  hostname: '',
  kind: 'tenant',
  service: 'web',
  env_id: '',
  env_slug: 'prod',
  org_id: '',
  app_id: 'crm',
  app_instance_id: '',
  status: 'active',
  ttl_s: 30,
};
const say = (message: unknown) => new Promise<void>(resolve => process.send?.(message, () => resolve()));

const answers = {
  userGroups: async () => ({ user_id: '', groups: [], as_of: new Date(0).toISOString() }),
  provisionAccess: async () => ({ groups: [] }),
  putRealm: async ({ params, body }: { params: { env_id: string }; body: { host: string } }) => ({
    env_id: params.env_id,
    host: body.host,
  }),
};

/** The registry under the real kernel, with one app instance to resolve; beside it, on the same TLS, a server that only says a constant. */
process.env['PLATFORM_BENCH_KEY'] = randomBytes(32).toString('base64');
await using host = await boot(registry, {
  environment: { PLATFORM_SYS_KEY_ENCRYPTION_REF: 'env://PLATFORM_BENCH_KEY', PLATFORM_SYS_AUDIT_KEY_REF: 'env://PLATFORM_BENCH_KEY' },
  stubs: { identity: answers as unknown as Stubs<{ identity: typeof identity }>['identity'] & object },
});
const admin = host.by(as.user('sys:sys:admin', 'sys:org:admin', 'sys:env:admin', 'sys:app:admin'));
const proxy = host.by(as.machine('proxy', 'sys:instances:read'));
const org = await admin.createOrg({ body: { slug: 'bench', display_name: 'Bench' } });
const env = await admin.createEnv({ body: { org_id: org.org_id, slug: 'prod', display_name: 'Production' } });
const { hostname } = await admin.createApplication({
  params: { env_id: env.env_id },
  body: { app_id: 'crm', slug: 'crm', name: 'Customers', auth_mode: 'open' },
});
const resolved = await proxy.resolveHostname({ query: { hostname } });
/**
 * The index as the resolver has it, on the same store, with the database's answer given: a lookup never asks again while nothing changes.
 */
const index = new HostIndex({ kv: host.process.kv, cache: cacheOn(host.clock) }, { find: async () => resolved });

const { pq } = host.stores.authority;
const leaf = await pq.issue({ commonName: 'sys', names: ['dns:sys.ops.sys.localhost'], usages: ['server'], days: 1 });
const tls = {
  key: leaf.key as string,
  cert: leaf.chain,
  ca: pq.files.rootCertificate,
  minVersion: 'TLSv1.3',
  ecdhCurve: 'X25519MLKEM768',
} as const;
const context = createSecureContext(tls);
const text = JSON.stringify(BODY);
const bare = createServer(
  { ...tls, requestCert: true, rejectUnauthorized: true, SNICallback: (_, done) => done(null, context) },
  (_, res) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length }).end(text);
  },
);
await new Promise<void>(resolve => bare.listen(0, '127.0.0.1', () => resolve()));

const shared = { ca: pq.files.rootCertificate, ...(await host.workload('proxy')), hostname };
const { port } = bare.address() as { port: number };
const seconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};
const stopped = Promise.withResolvers<void>();
process.on('disconnect', () => stopped.resolve());
process.on('message', (asked: Asked) => void answer(asked));
await say({ platform: { ...shared, port: host.process.port }, bare: { ...shared, port } } satisfies Record<'platform' | 'bare', Server>);
await stopped.promise;
bare.close();
bare.closeAllConnections();

async function answer(asked: Asked): Promise<void> {
  if (asked === 'cpu') return say(seconds());
  const before = seconds();
  for (let done = 0; done < asked.lookups; done += asked.atOnce)
    await Promise.all(Array.from({ length: asked.atOnce }, () => index.find(hostname)));
  return say(seconds() - before);
}
