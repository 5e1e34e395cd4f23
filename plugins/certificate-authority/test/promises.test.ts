import 'reflect-metadata';
import { createPublicKey } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { outcomeOf } from '@platform/kernel/outbox/relay/delivery';
import { as, boot, manifestOf, openAuthority, openTestStores } from '@platform/testing';
import { flattenedVerify } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { certificateAuthority } from '../contract/index.ts';
import { Nonces } from '../src/acme/nonces.ts';
import { type Order, Orders } from '../src/acme/orders.ts';
import { Announcer } from '../src/announcer.ts';
import { Issuance } from '../src/issuance/issuance.ts';
import { Mint } from '../src/issuance/mint.ts';
import { PlatformNames } from '../src/issuance/platform-names.ts';
import plugin from '../src/plugin.ts';
import { UpstreamAccount } from '../src/upstream/upstream-account.ts';
import { UpstreamClient, UpstreamFailed, UpstreamRefused } from '../src/upstream/upstream-client.ts';
import { AcmeAgent, csrFor } from './fixtures/acme-agent.ts';
import { World } from './fixtures/world.ts';

let world: World;
const home = mkdtempSync(join(tmpdir(), 'platform-promises-'));
beforeAll(async () => {
  world = await World.start();
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

describe('events and figures', () => {
  test('CA-041 CA-087 an event waits in the authority’s own outbox while the bus is away, and goes out by the relay’s pace, nothing but the bus keeping it', {
    timeout: 30_000,
  }, async () => {
    const manifest = manifestOf(certificateAuthority, '0.0.0-test');
    expect([manifest.placement.outbox_poll_s, manifest.consumes]).toEqual([5, {}]);
    world.host.busAway = true;
    const agent = await AcmeAgent.of(world);
    const id = agent.kid.split('/').at(-1) as string;
    const sql = await world.host.sql();
    const row = async () =>
      (
        await sql<
          { relayed: boolean; attempts: number; next_retry_at: Date | null }[]
        >`select relayed, attempts, next_retry_at from outbox where payload ->> 'account_id' = ${id}`
      )[0];
    await expect.poll(async () => (await row())?.attempts ?? 0).toBeGreaterThan(0);
    const waiting = await row();
    expect([waiting?.relayed, new Date(waiting?.next_retry_at as Date).getTime() > world.host.clock.now().getTime()]).toEqual([
      false,
      true,
    ]);
    world.host.busAway = false;
    await expect.poll(async () => (await row())?.relayed, { timeout: 15_000 }).toBe(true);
    expect(world.host.bus.some(({ payload }) => payload['account_id'] === id)).toBe(true);
  });

  test('CA-086 an event that cannot be queued is a warning, and the operation goes on', async () => {
    const warned: object[] = [];
    const context = {
      db: { tx: async () => Promise.reject(new Error('no database')) },
      log: { warn: (fields: object) => void warned.push(fields) },
    };
    await using announcer = new Announcer(context as never);
    announcer.tell('platform:acme:account:created', async () => undefined);
    await announcer[Symbol.asyncDispose]();
    expect(warned).toEqual([expect.objectContaining({ event_type: 'platform:acme:account:created' })]);
    const never = { ...context, db: { tx: () => new Promise(() => undefined) } };
    const full = new Announcer(never as never);
    full.tell('x', async () => undefined);
    await Promise.resolve();
    for (let count = 0; count < 257; count += 1) full.tell('x', async () => undefined);
    expect(warned).toHaveLength(2);
  });

  test('CA-089 counters of what was answered go to stat:metrics every ten seconds, without paths or bytes', async () => {
    const heard: Record<string, unknown>[] = [];
    await using _subscription = await world.kv.subscribe('stat:metrics', message => void heard.push(JSON.parse(message)));
    await world.host.clock.advance('10s');
    await world.host.fetch('/acme/directory');
    await world.host.fetch('/acme/nothing');
    await world.host.clock.advance('10s');
    await expect
      .poll(() => heard)
      .toContainEqual({
        service: 'acme',
        at: expect.any(String),
        counts: { requests: 2 },
        statuses: { '2xx': 1, '4xx': 1 },
        latency_ms: { p50: expect.any(Number), p95: expect.any(Number), p99: expect.any(Number) },
      });
  });
});

describe('who reaches it, and how', () => {
  test('CA-082 only over TLS 1.3 with the post-quantum exchange', async () => {
    const shake = (options: object) =>
      new Promise<string>(resolve => {
        const socket = connect(
          {
            host: '127.0.0.1',
            port: world.host.process.port,
            servername: 'acme.ops.sys.localhost',
            ca: world.stores.authority.pq.files.rootCertificate,
            ...options,
          },
          () => {
            resolve('connected');
            socket.destroy();
          },
        );
        socket.on('error', () => resolve('refused'));
      });
    expect([
      await shake({ ecdhCurve: 'X25519MLKEM768' }),
      await shake({ ecdhCurve: 'X25519' }),
      await shake({ maxVersion: 'TLSv1.2' }),
    ]).toEqual(['connected', 'refused', 'refused']);
    await expect(fetch(`http://127.0.0.1:${world.host.process.port}/v1/health`)).rejects.toThrow();
  });

  test('CA-085 without its database role it does not start', async () => {
    await using stores = await openTestStores();
    const without = {
      ...stores,
      stores: { ...stores.stores, ensureService: async () => undefined },
      [Symbol.asyncDispose]: async () => undefined,
    };
    await expect(boot(plugin, { stores: without })).rejects.toThrow(/acme/);
  });

  test('CA-098 nobody is slowed down: three hundred requests of one address are all answered', async () => {
    const answers = await Promise.all(Array.from({ length: 300 }, () => world.host.fetch('/acme/new-nonce')));
    expect([...new Set(answers.map(({ status }) => status))]).toEqual([204]);
    expect(new Set(answers.map(({ headers }) => headers['replay-nonce'])).size).toBe(300);
  });

  test('CA-039 it asks no other service anything: tenants and bindings are not its own', () => {
    const { uses, routes } = manifestOf(certificateAuthority, '0.0.0-test');
    expect([uses, Object.values(routes).filter(({ path }) => /tenant|org|env|identit|binding/.test(path))]).toEqual([{}, []]);
  });

  test('CA-079 F-29 a mint by the secret is a warning when it comes later than a start', async () => {
    let at = 0;
    const said: [string, object][] = [];
    const context = {
      clock: { now: () => new Date(at) },
      platform: { domain: 'localhost', newId: () => 'id' },
      config: { leafDays: 90 },
      log: { info: (fields: object) => void said.push(['info', fields]), warn: (fields: object) => void said.push(['warn', fields]) },
    };
    const issued = { issued: { chain: '', key: '' }, meta: { serial: '1' } };
    const issuance = { admitted: async (_path: string, work: () => unknown) => work(), issue: async () => issued };
    const parts = {
      issuance,
      enrollment: { admits: async () => true },
      announcer: { tell: () => undefined },
      names: new PlatformNames('localhost', () => []),
      suffixes: [],
    };
    const mint = new Mint(context as never, parts as never);
    const ask = () =>
      mint.clientCertificate({
        body: { service_name: 'bus' },
        headers: { 'x-platform-bootstrap-enrollment': 's' },
        ip: '127.0.0.1',
      } as never);
    await ask();
    at = 120_001;
    await ask();
    expect(said).toEqual([
      ['info', expect.objectContaining({ channel: 'enrollment', service_name: 'bus' })],
      ['warn', expect.objectContaining({ channel: 'enrollment', service_name: 'bus', peer: '127.0.0.1' })],
    ]);
  });
});

describe('what is bounded', () => {
  test('CA-035 CA-036 CA-097 under ten times the mint budget all that is too much is sent away at once, and health, roots and downloads answer', {
    timeout: 60_000,
  }, async () => {
    const agent = await AcmeAgent.of(world);
    const { order } = await agent.obtain(['busy.localhost']);
    const ready = await agent.order('ready.localhost');
    await agent.prove(ready);
    const { der: csr } = await csrFor(['ready.localhost']);
    const { pq } = world.stores.authority;
    const [gate, issue] = [Promise.withResolvers<void>(), pq.issue.bind(pq)];
    pq.issue = async request => {
      await gate.promise;
      return issue(request);
    };
    try {
      const persona = as.user('acme:clientcert:issue');
      const shed: string[] = [];
      const asked = Array.from({ length: 480 }, async () => {
        const answer = await world.mint({ service_name: 'func' }, { persona });
        if (answer.status === 503) shed.push(`${String(answer.json['code'])} ${String(answer.headers['retry-after'])}`);
        return answer.status;
      });
      await expect.poll(() => shed.length, { timeout: 40_000 }).toBe(432);
      expect([...new Set(shed)]).toEqual(['mint_queue_full 30']);
      for (const answer of [await agent.order('other.localhost'), await agent.post(ready.json.finalize, { csr })])
        expect(answer).toMatchObject({
          status: 503,
          headers: { 'retry-after': '30' },
          json: { type: 'urn:ietf:params:acme:error:rateLimited' },
        });
      for (const path of ['/v1/health', '/v1/ca/root.crt', '/v1/ca/intermediate.crt', new URL(order.json.certificate).pathname])
        expect((await world.host.fetch(path)).status).toBe(200);
      gate.resolve();
      const statuses = await Promise.all(asked);
      expect([statuses.filter(status => status === 201).length, statuses.filter(status => status === 503).length]).toEqual([48, 432]);
    } finally {
      gate.resolve();
      pq.issue = issue;
    }
  });

  test('CA-088 an event comes again when the bus says so, and in two seconds where it says nothing', () => {
    const at = new Date(0);
    const pause = (result: { status: 429 | 503; retryAfterS?: number }) =>
      outcomeOf({ id: 'x', attempts: 7, refusals: 0 }, { ok: false, error: 'busy', ...result }, at).next_retry_at;
    expect([pause({ status: 429, retryAfterS: 17 }), pause({ status: 503, retryAfterS: 1 }), pause({ status: 503 })]).toEqual(
      [17, 1, 2].map(seconds => new Date(seconds * 1_000).toISOString()),
    );
  });
  test('CA-054 an event that the bus refuses ten times is parked: it is tried no more, and stays', () => {
    const refused = { ok: false, status: 422, error: 'no' } as const;
    const after = (refusals: number) => outcomeOf({ id: 'x', attempts: refusals, refusals }, refused, new Date(0));
    expect(Array.from({ length: 9 }, (_, refusals) => after(refusals).parked)).toEqual(Array(9).fill(false));
    expect(after(9)).toMatchObject({ parked: true, relayed: false, next_retry_at: null });
  });

  test('CA-062 G-ACME-04 nonces end after an hour, and the oldest of a hundred thousand goes first', () => {
    let now = 0;
    const nonces = new Nonces(() => now);
    const [first, second] = [nonces.make(), nonces.make()];
    now = 3_600_000;
    expect([nonces.use(first), nonces.use(first)]).toEqual([true, false]);
    now += 1;
    expect(nonces.use(second)).toBe(false);
    const oldest = nonces.make();
    for (let count = 0; count < 100_000; count += 1) nonces.make();
    expect([nonces.size, nonces.use(oldest)]).toEqual([100_000, false]);
  });

  test('CA-093 what goes wrong while signing is 500, with its cause for the log alone', async () => {
    const cause = new Error('the disk is full');
    const context = {
      authority: { anchors: { pq: { intermediate: '' }, classical: { intermediate: '' } }, issue: async () => Promise.reject(cause) },
      problem: (code: string, more: object) => Object.assign(new Error(code), more),
    };
    const issuance = new Issuance(context as never, {} as never, {} as never);
    await expect(issuance.issue({ hierarchy: 'pq' } as never, {} as never)).rejects.toMatchObject({ message: 'issuance_failed', cause });
    expect(certificateAuthority.problems.issuance_failed.status).toBe(500);
  });

  test('G-ACME-04 an order that was not finished in seven days is invalid, and one of ninety days ago is forgotten', async () => {
    let now = Date.parse('2026-01-01T00:00:00Z');
    const orders = new Orders(home, () => now);
    await orders.load(() => undefined);
    const id = '019b0000-0000-7000-8000-000000000001';
    const order: Order = {
      order_id: id,
      account_id: 'a',
      classification: 'local',
      status: 'ready',
      identifier: { type: 'dns', value: 'a.lan' },
      identifiers: [{ type: 'dns', value: 'a.lan' }],
      created_at: new Date(now).toISOString(),
      expires: orders.expiry(),
      authorizations: [
        { identifier: { type: 'dns', value: 'a.lan' }, wildcard: false, status: 'valid', challenge: { token: 't', status: 'valid' } },
      ],
      certificate_id: null,
    };
    await orders.put(order);
    now += 7 * 86_400_000 - 1;
    expect((await orders.get(id))?.status).toBe('ready');
    now += 1;
    expect(await orders.get(id)).toMatchObject({ status: 'invalid', authorizations: [{ status: 'expired' }] });
    await orders.forgetOld();
    expect(orders.count).toBe(1);
    now += 84 * 86_400_000;
    await orders.forgetOld();
    expect([orders.count, await orders.get(id), await orders.ofAccount('a', 10)]).toEqual([0, undefined, []]);
  });
});

describe('the client of the upstream', () => {
  interface Step {
    readonly status: number;
    readonly type?: string;
  }
  const servers: Server[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    }
  });

  /** A server that answers the requests for one order as it was told to, and keeps what it read. */
  async function upstream(steps: readonly Step[], tls: object = {}) {
    const { classical } = await openAuthority(join(home, 'outside'));
    const leaf = await classical.issue({ commonName: 'localhost', names: ['dns:localhost'], usages: ['server'], days: 1 });
    const read: { protected: string; payload: string; signature: string }[] = [];
    let nonces = 0;
    const server = createServer({ key: leaf.key as string, cert: leaf.chain, ...tls }, (req, res) => {
      const chunks: Buffer[] = [];
      req.on('data', (chunk: Buffer) => chunks.push(chunk));
      req.on('end', () => {
        const origin = `https://${req.headers.host}`;
        res.setHeader('replay-nonce', `nonce-${(nonces += 1)}`);
        if (req.url === '/dir')
          return void res.end(
            JSON.stringify({ newNonce: `${origin}/nonce`, newAccount: `${origin}/account`, newOrder: `${origin}/order` }),
          );
        if (req.url === '/account') return void res.writeHead(201, { location: `${origin}/account/1` }).end('{}');
        if (req.url !== '/order') return void res.end();
        const step = steps[read.length] ?? { status: 201 };
        read.push(JSON.parse(Buffer.concat(chunks).toString('utf8')));
        res
          .writeHead(step.status, { 'content-type': 'application/problem+json' })
          .end(JSON.stringify({ type: `urn:ietf:params:acme:error:${step.type ?? ''}`, detail: 'as it was told' }));
      });
    });
    servers.push(server);
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const directoryUrl = `https://localhost:${(server.address() as AddressInfo).port}/dir`;
    const account = await UpstreamAccount.open(home, directoryUrl);
    return { read, directoryUrl, account, root: classical.files.rootCertificate };
  }

  test('CA-095 CA-025 a nonce that is refused is taken from the refusal and sent once more, signed anew; a second refusal is the upstream’s failure', async () => {
    const { read, directoryUrl, account, root } = await upstream([
      { status: 400, type: 'badNonce' },
      { status: 201 },
      { status: 400, type: 'badNonce' },
      { status: 400, type: 'badNonce' },
    ]);
    using client = new UpstreamClient({ directoryUrl, account, contact: '', caPem: root });
    await client.newOrder([{ type: 'dns', value: 'example.org' }]);
    await expect(client.newOrder([{ type: 'dns', value: 'example.org' }])).rejects.toBeInstanceOf(UpstreamFailed);
    const nonces = await Promise.all(
      read.map(async jws => (await flattenedVerify(jws, createPublicKey(account.key))).protectedHeader?.['nonce']),
    );
    expect([read.length, new Set(nonces).size]).toEqual([4, 4]);
  });

  test('CA-094 CA-096 what it refuses, and what it cannot do now, are told apart, and neither is tried again', async () => {
    const { read, directoryUrl, account, root } = await upstream([
      { status: 403, type: 'unauthorized' },
      { status: 500 },
      { status: 429, type: 'rateLimited' },
    ]);
    using client = new UpstreamClient({ directoryUrl, account, contact: '', caPem: root });
    const ask = () => client.newOrder([{ type: 'dns', value: 'example.org' }]);
    await expect(ask()).rejects.toMatchObject({
      constructor: UpstreamRefused,
      problem: { type: 'urn:ietf:params:acme:error:unauthorized' },
    });
    await expect(ask()).rejects.toBeInstanceOf(UpstreamFailed);
    await expect(ask()).rejects.toBeInstanceOf(UpstreamRefused);
    expect(read).toHaveLength(3);
  });

  test('CA-028 it speaks the hybrid exchange where the other side can, and a classical one where it cannot', async () => {
    for (const ecdhCurve of ['X25519MLKEM768', 'X25519', 'P-256']) {
      const { directoryUrl, account, root } = await upstream([], { ecdhCurve });
      using client = new UpstreamClient({ directoryUrl, account, contact: '', caPem: root });
      expect((await client.newOrder([])).location).toBeUndefined();
    }
  });

  test('CA-029 it trusts the system’s roots, and those of the setting, which is PEM or the path of a file', async () => {
    const { directoryUrl, account, root } = await upstream([]);
    using trusting = new UpstreamClient({ directoryUrl, account, contact: '', caPem: '' });
    await expect(trusting.newOrder([])).rejects.toMatchObject({
      constructor: UpstreamFailed,
      message: expect.stringMatching(/certificate/),
    });
    writeFileSync(join(home, 'root.pem'), root);
    using by = new UpstreamClient({ directoryUrl, account, contact: '', caPem: join(home, 'root.pem') });
    await by.newOrder([]);
  });
});
