import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { connect as connectTcp } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TENANT, World } from './fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

const ECHO = 'echo.ops.sys.localhost';
const OWN = 'proxy.ops.sys.localhost';
let tenants = 0;
/** A host of an environment of its own, with these settings of the ingress. */
const tenant = (attributes: Record<string, unknown> = {}, more: { kind?: 'custom' } = {}) => {
  tenants += 1;
  const env_id = TENANT.env_id.slice(0, -3) + String(tenants).padStart(3, '0');
  const host = `echo.prod.d${tenants}.localhost`;
  world.attributes.set(env_id, attributes);
  world.hosts.set(host, { service: 'echo', status: 'active', env_id, ...more });
  return { host, env_id };
};
const figure = async (name: string) =>
  (await world.host.fetch('/v1/metrics', { persona: as.user('proxy:metrics:read') })).json[name] as number;
/** A handshake at the edge that trusts anybody: who answered. */
async function shownAt(servername: string) {
  const socket = connectTls({ host: '127.0.0.1', port: world.port, servername, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const certificate = socket.getPeerX509Certificate();
  socket.destroy();
  return {
    subject: certificate?.subject,
    issuer: certificate?.issuer,
    thumbprint: Buffer.from(certificate?.fingerprint256.replaceAll(':', '') ?? '', 'hex').toString('base64url'),
    certificate,
  };
}
/** One request to a plain port. */
function plainly(
  port: number,
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<{ status: number; headers: IncomingMessage['headers']; text: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      { host: '127.0.0.1', port, path, method: options.method ?? 'GET', agent: false, headers: options.headers ?? {} },
      response => {
        let text = '';
        response
          .on('data', chunk => (text += chunk))
          .on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      },
    );
    outgoing.on('error', reject).end(options.body);
  });
}

describe('until the authority is there', () => {
  test('ING-014 the edge shows a certificate of its own for 24 hours; ING-015 then the issued one, without a restart', async () => {
    world.authorityAway = true;
    const { subject, issuer, certificate } = await shownAt(OWN);
    expect([subject, issuer]).toEqual([`CN=${OWN}`, `CN=${OWN}`]);
    const hours = (Date.parse(certificate?.validTo ?? '') - world.host.clock.now().getTime()) / 3_600_000;
    expect([certificate?.checkHost(OWN), Math.round(hours), certificate?.publicKey.asymmetricKeyDetails?.namedCurve]).toEqual([
      OWN,
      24,
      'prime256v1',
    ]);
    expect(await figure('edge_bootstrap')).toBe(1);
    world.authorityAway = false;
    await expect.poll(async () => (await world.host.clock.advance('1s'), figure('edge_bootstrap'))).toBe(0);
    const socket = world.open(OWN);
    await once(socket, 'secureConnect');
    expect([socket.authorized, socket.getPeerX509Certificate()?.issuer === issuer]).toEqual([true, false]);
    socket.destroy();
  });

  test('ING-015 H-02 a certificate that was revoked is not shown again', async () => {
    const { host } = tenant();
    const first = await shownAt(host);
    expect((await shownAt(host)).thumbprint).toBe(first.thumbprint);
    await world.kv.call('PUBLISH', 'revoked:changed', first.thumbprint);
    await expect.poll(async () => (await shownAt(host)).thumbprint).not.toBe(first.thumbprint);
  });

  const asked = (host: string) => world.fetched.filter(name => name === host).length;
  /** Half a second, once the authority was asked so often. */
  const halfSecond = async (host: string, times: number) => {
    await expect.poll(() => asked(host)).toBe(times);
    await world.host.clock.advance('500ms');
  };

  test('KRN-029 C22 a name of a customer is asked for without a request, twice a second, while the handshake waits', async () => {
    const { host } = tenant({}, { kind: 'custom' });
    world.running.set(host, 3);
    const waiting = Promise.all([world.ask(host), world.ask(host)]);
    for (let times = 1; times <= 3; times++) await halfSecond(host, times);
    expect((await waiting).map(({ status }) => status)).toEqual([200, 200]);
    expect(asked(host)).toBe(4);
  });

  test('KRN-029 after fifteen seconds the handshake is refused, and the next one a second later asks anew', async () => {
    const { host } = tenant({}, { kind: 'custom' });
    world.running.set(host, 1_000);
    const refused = expect(shownAt(host)).rejects.toThrow();
    for (let times = 1; times <= 30; times++) await halfSecond(host, times);
    await refused;
    expect(asked(host)).toBe(31);
    await expect(shownAt(host)).rejects.toThrow();
    expect(asked(host)).toBe(31);
    world.running.delete(host);
    await world.host.clock.advance('1s');
    expect((await world.ask(host)).status).toBe(200);
  });
});

describe('layer 4', () => {
  const workload = async (socket?: Duplex): Promise<TLSSocket> => {
    const { cert, key } = await world.host.workload('tester');
    const options = {
      servername: ECHO,
      ca: world.host.stores.authority.pq.files.rootCertificate,
      cert,
      key,
      ecdhCurve: 'X25519MLKEM768',
      minVersion: 'TLSv1.3' as const,
    };
    const secured = socket ? connectTls({ socket, ...options }) : connectTls({ host: '127.0.0.1', port: world.port, ...options });
    await once(secured, 'secureConnect');
    return secured;
  };
  const ask = async (socket: TLSSocket, path: string) => {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${ECHO}\r\nX-Platform-Env-Id: untouched\r\nConnection: close\r\n\r\n`);
    let answer = '';
    for await (const chunk of socket as AsyncIterable<Buffer>) answer += chunk.toString();
    return answer;
  };

  test('ING-002 ING-003 a workload inside is piped to the backend, which ends TLS itself; a browser at the same name ends at layer 7', async () => {
    expect(await ask(await workload(), '/piped')).toMatch(/^HTTP\/1\.1 200 /);
    expect(world.seen.at(-1)).toMatchObject({ url: '/piped', peer: 'm2m-tester', headers: { 'x-platform-env-id': 'untouched' } });
    expect(world.seen.at(-1)?.headers['x-forwarded-for']).toBeUndefined();
    await world.ask(ECHO, { path: '/ended' });
    expect(world.seen.at(-1)).toMatchObject({ url: '/ended', peer: 'm2m-proxy', headers: { 'x-platform-env-id': SYSTEM.envId } });
    expect(await figure('edge_piped_total')).toBe(1);
  });

  test('ING-030 a hello in pieces reaches the backend whole', async () => {
    const raw = connectTcp({ host: '127.0.0.1', port: world.port, noDelay: true });
    await once(raw, 'connect');
    const slowly = new Duplex({
      read: () => undefined,
      write(chunk: Buffer, _encoding, done) {
        for (let at = 0; at < chunk.length; at += 200) raw.write(chunk.subarray(at, at + 200));
        setImmediate(done);
      },
      final: done => void raw.end(done),
    });
    raw.on('data', chunk => slowly.push(chunk)).on('end', () => slowly.push(null));
    expect(await ask(await workload(slowly), '/pieces')).toMatch(/^HTTP\/1\.1 200 /);
    expect(world.seen.at(-1)).toMatchObject({ url: '/pieces', peer: 'm2m-tester' });
  });

  test('ING-003 what a piped backend sends comes whole, however its client pauses, and ends with it', async () => {
    const connections = await figure('edge_connections');
    const socket = await workload();
    socket.write(`GET /endless HTTP/1.1\r\nHost: ${ECHO}\r\n\r\n`);
    let read = 0;
    // One altered byte would break the TLS in it.
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      read += chunk.length;
      if (read % 7 === 0) await new Promise(setImmediate);
      if (read > 24_000_000) break;
    }
    expect(read).toBeGreaterThan(24_000_000);
    await expect.poll(() => figure('edge_connections')).toBe(connections);
  });

  test('ING-029 ING-031 what is no TLS, or has no name, is cut without a word', async () => {
    for (const bytes of ['GET / HTTP/1.1\r\nHost: a\r\n\r\n', 'SSH-2.0-x\r\n']) {
      const raw = connectTcp({ host: '127.0.0.1', port: world.port });
      raw.write(bytes);
      let answer = '';
      raw.on('data', chunk => (answer += chunk)).on('error', () => undefined);
      await once(raw, 'close');
      expect(answer).toBe('');
    }
  });
});

describe('port 80', () => {
  test('ING-001 ING-013 a challenge goes to the authority without context or rules, GET and HEAD', async () => {
    world.attributes.set(SYSTEM.envId, { waf_mode: 'block', rate_limit_enabled: true, rate_limit_rps: 1 });
    const path = '/.well-known/acme-challenge/known';
    for (let turn = 0; turn < 5; turn++)
      expect(await plainly(world.challengePort, path, { headers: { 'user-agent': "' or 1=1 --" } })).toMatchObject({
        status: 200,
        text: 'known.thumbprint',
      });
    const { headers } = world.seen.at(-1) ?? { headers: {} };
    expect(Object.keys(headers).filter(name => /^x-(platform|forwarded)-/.test(name) && name !== 'x-platform-service')).toEqual([]);
    expect(await plainly(world.challengePort, path, { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
    expect((await plainly(world.challengePort, '/.well-known/acme-challenge/unknown')).status).toBe(404);
    world.attributes.delete(SYSTEM.envId);
    await world.host.clock.advance('31s');
    await world.hear();
  });

  test.each([
    ['GET', '/'],
    ['GET', '/.well-known/acme-challenge/'],
    ['GET', '/.well-known/acme-challenge/a/b'],
    ['GET', '/.well-known/acme-challenge/../../v1/ca/root.crt'],
    ['GET', '/.well-known/acme-challenge/known?x=1'],
    ['POST', '/.well-known/acme-challenge/known'],
    ['OPTIONS', '*'],
  ])('ING-011 ING-012 %s %s is the fixed 404', async (method, path) => {
    const before = world.seen.length;
    expect(await plainly(world.challengePort, path, { method })).toMatchObject({
      status: 404,
      text: '',
      headers: { 'content-length': '0', connection: 'close' },
    });
    expect(world.seen.length).toBe(before);
  });
});

describe('the management port', () => {
  const ask = (path: string, options: Parameters<typeof plainly>[2] = {}) => plainly(world.managementPort, path, options);
  const bearer = async (persona: ReturnType<typeof as.user>) => {
    await world.host.fetch('/v1/health', { persona });
    return { authorization: `Bearer ${world.host.mint.token(persona, 'proxy')}` };
  };

  test('ING-022 ING-023 ING-024 health over plain HTTP, without a credential, with mappings, services and what is under way', async () => {
    await world.ask(tenant().host);
    const answered = world.ask(ECHO, { path: '/held' });
    await expect.poll(() => world.held.length).toBe(1);
    await expect
      .poll(async () => (await world.host.clock.advance('2s'), JSON.parse((await ask('/v1/health')).text).services?.echo?.active))
      .toBe(1);
    const { status, text } = await ask('/v1/health');
    const health = JSON.parse(text) as Record<string, Record<string, number>>;
    expect([status, health]).toMatchObject([
      200,
      {
        status: 'ok',
        service: 'proxy',
        version: expect.any(String),
        build: expect.any(String),
        active_connections: 1,
        services: { echo: { active: 1, suspect: 0 } },
      },
    ]);
    const { total = 0, platform = 0, registry = 0 } = health['mappings'] ?? {};
    expect([total, registry > 0, platform > 0, health['mappings']?.['age_s']]).toEqual([
      platform + registry,
      true,
      true,
      expect.any(Number),
    ]);
    for (const response of world.held.splice(0)) response.end('{}');
    await answered;
    await expect.poll(async () => JSON.parse((await ask('/v1/health')).text).active_connections).toBe(0);
  });

  test('ING-028 ING-051 /openapi.json is null, and everything else is under /v1', async () => {
    expect(await ask('/openapi.json')).toMatchObject({ status: 200, text: 'null' });
    for (const path of ['/', '/health', '/v2/health', '/metrics']) expect([path, (await ask(path)).status]).toEqual([path, 404]);
  });

  test('ING-022 ING-044 the gates are those of the mesh; C28 a token bound to a certificate is refused', async () => {
    expect((await ask('/v1/prox/mappings')).status).toBe(401);
    expect((await ask('/v1/prox/mappings', { headers: await bearer(as.user('proxy:backends:read')) })).status).toBe(403);
    const { status, text } = await ask('/v1/prox/backends', { headers: await bearer(as.user('proxy:backends:read')) });
    const { items } = JSON.parse(text) as { items: Record<string, unknown>[] };
    expect([status, items.find(({ service }) => service === 'echo')]).toMatchObject([
      200,
      {
        status: 'Active',
        ip: '127.0.0.1',
        port: expect.any(Number),
        health_age_s: expect.any(Number),
        suspect: false,
        suspect_until: null,
        in_flight: expect.any(Number),
        pool_idle: expect.any(Number),
      },
    ]);
    const persona = as.user('proxy:mappings:read');
    await world.host.fetch('/v1/health', { persona });
    const bound = world.host.mint.token(persona, 'proxy', { cnf: { 'x5t#S256': 'a'.repeat(43) } });
    expect((await ask('/v1/prox/mappings', { headers: { authorization: `Bearer ${bound}` } })).status).toBe(401);
  });

  test('ING-027 policy sets, relations and attributes are administered here, behind their own gate', async () => {
    for (const kind of ['policy-sets', 'relations', 'attributes']) {
      const path = `/v1/admin/${kind}?target_env_id=${SYSTEM.envId}`;
      expect([kind, (await ask(path)).status]).toEqual([kind, 401]);
      expect([kind, (await ask(path, { headers: await bearer(as.user('proxy:mappings:read')) })).status]).toEqual([kind, 403]);
      expect([kind, (await ask(path, { headers: await bearer(as.user('proxy:policy:read', 'proxy:policy:admin')) })).status]).toEqual([
        kind,
        200,
      ]);
    }
  });
});

test('operators see the traffic of the edge', async () => {
  await world.ask(ECHO, { path: '/teapot' });
  await world.host.clock.advance('10s');
  const by = world.host.by(as.user('proxy:traffic:read'));
  const { items } = await by.traffic({});
  expect(items.reduce((sum, { status_4xx }) => sum + status_4xx, 0)).toBeGreaterThan(0);
  expect(await by.figures({})).toMatchObject({ edge_handshakes_total: expect.any(Number), post_quantum_percent: expect.any(Number) });
});

test('G-STAT-04 a stream of events is counted at the edge, and how long it was open is no answer time', async () => {
  const told: { counts: { requests: number; waited?: number } }[] = [];
  await world.host.clock.advance('10s');
  await using _heard = await world.kv.subscribe('stat:metrics:tls', message => void told.push(JSON.parse(message)));
  for (const path of ['/events', '/a', '/events']) expect((await world.ask(ECHO, { path })).status).toBe(200);
  await expect
    .poll(async () => {
      await world.host.clock.advance('10s');
      return told.map(({ counts: { requests, waited } }) => ({ requests, waited }));
    })
    .toContainEqual({ requests: 3, waited: 2 });
});

test('ING-005 ING-016 ING-045 the ingress has no tables, no migrations, and declares no event of its own', async () => {
  const { contract, migrations } = (await import('../src/plugin.ts')).default;
  expect([migrations, contract.events, 'tasks' in contract.base, 'keys' in contract.base]).toEqual([undefined, {}, false, false]);
  expect(world.host.bus.filter(({ event_type }) => event_type.startsWith('platform:proxy:'))).toEqual([]);
});
