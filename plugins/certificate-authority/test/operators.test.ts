import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { type Operator, SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import command from '../src/commands/ca-command.ts';
import { AcmeAgent } from './fixtures/acme-agent.ts';
import { World } from './fixtures/world.ts';

let world: World;
let agent: AcmeAgent;
const admin = as.user('acme:admin');
beforeAll(async () => {
  world = await World.start();
  agent = await AcmeAgent.of(world);
});
afterAll(() => world[Symbol.asyncDispose]());

const read = (path: string, persona = admin) => world.host.fetch(path, { persona });
const lines: string[] = [];
const operator: Operator = {
  call: async (_service, method, path, input) => {
    const query = new URLSearchParams((input?.query ?? {}) as Record<string, string>).toString();
    const answer = await world.host.fetch(path + (query ? `?${query}` : ''), {
      method,
      persona: admin,
      ...(input?.body ? { body: JSON.stringify(input.body) } : {}),
    });
    if (answer.status >= 300) throw new Error(String(answer.json['code']));
    return answer.json as never;
  },
  control: async () => undefined as never,
  print: line => void lines.push(line),
  progress: () => undefined,
};
const run = async (...args: string[]) => {
  lines.length = 0;
  return { code: await command.run(args, operator), text: lines.join('\n') };
};
const idOf = (answer: { json: { certificate: string } }) => answer.json.certificate.split('/').at(-1) as string;

describe('what is kept', () => {
  test('CA-004 CA-045 CA-051 CA-052 CA-002 folders and files are as documented, keys are their owner’s alone and come out nowhere', async () => {
    const { order } = await agent.obtain(['kept.localhost']);
    const id = idOf(order);
    expect(readdirSync(world.stores.dataDir)).toEqual(expect.arrayContaining(['accounts', 'ca', 'certificates', 'orders']));
    expect(readdirSync(join(world.stores.dataDir, 'certificates', id)).sort()).toEqual(['cert.pem', 'meta.json']);
    expect(world.file(`certificates/${id}/meta.json`)).toMatchObject({
      domain: 'kept.localhost',
      kind: 'leaf',
      source: 'local',
      revoked: false,
      not_after: expect.any(String),
    });
    const keys = ['root.key', 'intermediate.key', 'classical/root.key', 'classical/intermediate.key'];
    expect(keys.map(name => statSync(join(world.stores.dataDir, 'ca', name)).mode & 0o777)).toEqual(keys.map(() => 0o600));
    const secrets = keys.map(name => world.text(`ca/${name}`).split('\n')[1] as string);
    const doors = [
      '/openapi.json',
      '/acme/directory',
      '/v1/ca/root.crt',
      '/v1/ca/intermediate.crt',
      '/v1/admin/certificates',
      '/v1/admin/settings',
      '/v1/admin/hierarchies',
      `/acme/cert/${id}`,
      '/v1/ca/root.key',
      '/v1/ca/intermediate.key',
    ];
    for (const path of doors) {
      const { text } = await read(path);
      expect([path, text.includes('PRIVATE KEY'), secrets.some(secret => text.includes(secret))]).toEqual([path, false, false]);
    }
  });

  test('CA-042 CA-053 CA-084 the database holds its outbox and what every service’s kernel keeps, and no table of certificates', async () => {
    const sql = await world.host.sql();
    const tables = (
      await sql<{ table_name: string; n: string }[]>`select table_name from information_schema.tables where table_schema = current_schema()`
    ).map(({ table_name }) => table_name);
    const kernels = [
      'audit_marks',
      'consumer_leads',
      'idempotent_answers',
      'inbox',
      'schema_migrations',
      'service_keys',
      'work_jobs',
      'work_tasks',
    ];
    expect(tables.filter(name => !kernels.includes(name))).toEqual(['outbox']);
    const columns = await sql<
      { name: string }[]
    >`select column_name as name from information_schema.columns where table_schema = current_schema() and table_name = 'outbox'`;
    expect(columns.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        ...['id', 'env_id', 'event_type', 'stream_family', 'payload', 'publisher_id_token', 'publisher_subject'],
        ...['relayed', 'attempts', 'next_retry_at'],
      ]),
    );
    // Who it is its certificate says: the connection shows one, and the role is the one of that name.
    const [login] = await sql<
      { role: string; dn: string | null }[]
    >`select current_user as role, client_dn as dn from pg_stat_ssl where pid = pg_backend_pid()`;
    expect(login).toEqual({ role: expect.stringContaining('acme'), dn: expect.stringMatching(/^\/?CN=(svc\.|m2m-)?.*acme/) });
  });

  test('CA-006 CA-007 roots last 3650 days and intermediates 1825 unless the settings say otherwise', async () => {
    const { openAuthority } = await import('@platform/kernel/identity/certificates/trust-anchors');
    const { hostOptions } = await import('@platform/kernel/host/boot/options');
    const days = async (settings: Record<string, string>) => {
      const home = mkdtempSync(join(world.stores.dataDir, 'authority-'));
      const made = await openAuthority(home, hostOptions([], settings, () => undefined).validity);
      return [made.pq.files.rootCertificate, made.classical.files.intermediateCertificate].map(pem =>
        Math.round((Date.parse(new X509Certificate(pem).validTo) - Date.now()) / 86_400_000),
      );
    };
    expect([await days({}), await days({ PLATFORM_ACME_ROOT_DAYS: '100', PLATFORM_ACME_INTERMEDIATE_DAYS: '50' })]).toEqual([
      [3_650, 1_825],
      [100, 50],
    ]);
  });
});

describe('the log', () => {
  test('every certificate is in it, what the kernel signed by itself too; a changed line, a cut end, a planted certificate and a forgotten revocation are each found', async () => {
    const { order } = await agent.obtain(['logged.localhost']);
    const verify = async () =>
      (await read('/v1/admin/log/verification')).json as {
        intact: boolean;
        entries: number;
        certificates: number;
        faults: { kind: string }[];
      };
    const whole = await verify();
    expect(whole).toMatchObject({ intact: true, faults: [] });
    expect(whole.entries).toBeGreaterThanOrEqual(whole.certificates);
    const own = world.text('keys/acme/listener.crt');
    expect(world.text('issued/log.jsonl')).toContain(world.thumbprint(own));
    const path = join(world.stores.dataDir, 'issued/log.jsonl');
    const before = readFileSync(path, 'utf8');
    const kinds = async () => (await verify()).faults.map(({ kind }) => kind);
    writeFileSync(path, before.replace('"logged.localhost"', '"forged.localhost"'));
    expect(await kinds()).toContain('broken_chain');
    writeFileSync(path, before.split('\n').slice(0, -2).join('\n').concat('\n'));
    expect(await kinds()).toEqual(expect.arrayContaining(['cut', 'not_logged']));
    writeFileSync(path, before);
    expect(await kinds()).toEqual([]);
    const certificate = join(world.stores.dataDir, 'certificates', idOf(order), 'cert.pem');
    const chain = readFileSync(certificate, 'utf8');
    writeFileSync(certificate, own);
    expect(await kinds()).toEqual(['changed']);
    writeFileSync(certificate, chain);
    const head = join(world.stores.dataDir, 'issued/head.json');
    const signed = readFileSync(head, 'utf8');
    writeFileSync(head, JSON.stringify({ ...JSON.parse(signed), at: new Date(0).toISOString() }));
    expect(await kinds()).toEqual(['false_head']);
    writeFileSync(head, signed);
    expect((await verify()).intact).toBe(true);
  });

  test('a certificate that was put among the others beside the log is found after a restart; a half line of a crash is none', async () => {
    const leaf = await world.stores.authority.classical.issue({
      commonName: 'planted.localhost',
      names: ['dns:planted.localhost'],
      usages: ['server'],
      days: 1,
    });
    const id = '01a00000-0000-7000-8000-000000000001';
    const folder = join(world.stores.dataDir, 'certificates', id);
    mkdirSync(folder);
    writeFileSync(join(folder, 'cert.pem'), leaf.chain);
    writeFileSync(
      join(folder, 'meta.json'),
      JSON.stringify({
        certificate_id: id,
        serial: leaf.serial,
        domain: 'planted.localhost',
        kind: 'leaf',
        thumbprint: leaf.thumbprint,
        not_before: leaf.notBefore,
        not_after: leaf.notAfter,
        source: 'local',
        created_at: '',
        revoked: false,
        revoked_at: null,
        reason: null,
      }),
    );
    appendFileSync(join(world.stores.dataDir, 'issued/log.jsonl'), '{"seq":');
    await using later = await world.again();
    const { json } = await later.host.fetch('/v1/admin/log/verification', { persona: admin });
    expect(json).toMatchObject({ intact: false, faults: [{ kind: 'not_logged', detail: expect.stringContaining('planted.localhost') }] });
    rmSync(folder, { recursive: true });
    const planted = join(world.stores.dataDir, 'planted.pem');
    writeFileSync(planted, leaf.chain);
    expect(await run('verify', planted)).toMatchObject({ code: 1, text: expect.stringContaining('was never logged') });
  });

  test('the command proves it, lists and revokes; what it does not understand is answered with the usage', async () => {
    const { order, chain } = await agent.obtain(['command.localhost']);
    const file = join(world.stores.dataDir, 'command.pem');
    writeFileSync(file, chain);
    const proven = await run('verify', file);
    expect([proven.code, proven.text.includes('command.localhost, in the log'), proven.text.includes('nothing was changed')]).toEqual([
      0,
      true,
      true,
    ]);
    const listed = await run('list', '--q', 'command.localhost');
    expect([listed.code, listed.text]).toEqual([0, expect.stringContaining('1 certificate')]);
    expect(await run('revoke', idOf(order), '--reason', '4')).toMatchObject({ code: 0, text: expect.stringContaining('is revoked since') });
    expect((await run('list', '--state', 'revoked', '--q', 'command.localhost')).text).toContain(idOf(order));
    for (const args of [
      [],
      ['nothing'],
      ['list', 'more'],
      ['list', '--most', 'x'],
      ['revoke'],
      ['revoke', 'x'],
      ['revoke', idOf(order), '--reason', '99'],
      ['toString'],
    ])
      expect((await run(...args)).code).toBe(64);
  });
});

describe('revocation', () => {
  test('H-02 CA-040 who shows a revoked certificate is refused at every door and loses its connections; operators see that it still comes; there is no CRL and no OCSP', {
    timeout: 30_000,
  }, async () => {
    const minted = await world.mint({ service_name: 'stat' }, { workload: 'stat' });
    const { certificate_id: id, pem } = minted.json as { certificate_id: string; pem: string };
    const key = /-----BEGIN PRIVATE KEY[\s\S]+/.exec(pem)?.[0] as string;
    const cert = pem.replace(key, '');
    const open = new Agent({
      keepAlive: true,
      cert,
      key,
      ca: world.stores.authority.pq.files.rootCertificate,
      ecdhCurve: 'X25519MLKEM768',
      servername: 'acme.ops.sys.localhost',
    });
    const closed = Promise.withResolvers<void>();
    const ask = () =>
      new Promise<number>((resolve, reject) => {
        const asked = request(
          {
            host: '127.0.0.1',
            port: world.host.process.port,
            path: '/v1/ca/root.crt',
            agent: open,
            headers: { host: 'acme.ops.sys.localhost' },
          },
          answer => {
            answer.resume();
            answer.on('end', () => resolve(answer.statusCode ?? 0));
          },
        );
        asked.once('socket', socket => socket.once('close', () => closed.resolve()));
        asked.on('error', reject);
        asked.end();
      });
    expect(await ask()).toBe(200);
    expect((await world.revoke(id)).status).toBe(200);
    await closed.promise;
    for (const path of ['/v1/ca/root.crt', '/acme/directory', '/v1/admin/certificates'])
      expect(await world.host.fetch(path, { as: { cert, key } })).toMatchObject({ status: 401, json: { code: 'actor_revoked' } });
    await expect
      .poll(async () => ((await read(`/v1/admin/certificates?q=${id}`)).json['items'] as { used_since: number }[])[0]?.used_since, {
        timeout: 10_000,
      })
      .toBeGreaterThanOrEqual(3);
    for (const name of ['crl', 'ocsp']) expect((await world.host.fetch(`/v1/ca/${name}`)).status).toBe(404);
    open.destroy();
    expect(new X509Certificate(cert).infoAccess).toBeUndefined();
  });

  test('H-02 a listener whose certificate was revoked shows another one, and its service goes on', async () => {
    const shown = () => new X509Certificate(world.text('keys/acme/listener.crt')).serialNumber.toLowerCase();
    const serial = shown();
    const { items } = (await read(`/v1/admin/certificates?q=${serial}`)).json as { items: { certificate_id: string }[] };
    expect((await world.revoke(items[0]?.certificate_id as string)).status).toBe(200);
    await expect.poll(shown).not.toBe(serial);
    expect((await world.host.fetch('/acme/directory')).status).toBe(200);
  });
});

describe('what operators read', () => {
  test('F-24 CA-074 CA-075 CA-081 pages and their data are there for administrators, and refused to everybody else', async () => {
    for (const page of ['overview', 'certificates', 'certificate', 'accounts', 'orders', 'settings'])
      expect((await read(`/v1/admin/ui/${page}`)).json).toMatchObject({ schema: 'platform.admin-ui/1', page, scope: 'platform' });
    for (const data of ['certificates', 'accounts', 'orders', 'settings', 'figures', 'minutes', 'hierarchies', 'log/verification']) {
      expect([
        data,
        (await read(`/v1/admin/${data}`)).status,
        (await read(`/v1/admin/${data}`, as.user('sys:read'))).status,
        (await world.host.fetch(`/v1/admin/${data}`)).status,
      ]).toEqual([data, 200, 403, 401]);
    }
    expect((await world.host.fetch('/v1/admin/ui/overview')).status).toBe(401);
    expect((await read('/v1/admin/ui/nothing')).status).toBe(404);
    const { items } = (await read('/v1/admin/hierarchies')).json as { items: { name: string; role: string; algorithm: string }[] };
    expect(items.map(({ role, algorithm }) => `${role} ${algorithm}`)).toEqual([
      'Root ml-dsa-87',
      'Intermediate ml-dsa-65',
      'Root prime256v1',
      'Intermediate prime256v1',
    ]);
  });

  test('CA-073 policy is administered on the authority as on every service, with a scope of its own', async () => {
    for (const path of ['/v1/admin/policy-sets', '/v1/admin/relations', '/v1/admin/attributes'].map(
      name => `${name}?target_env_id=${SYSTEM.envId}`,
    ))
      expect([
        path,
        (await world.host.fetch(path)).status,
        (await read(path, as.user())).status,
        (await read(path, as.user('acme:policy:admin', 'acme:policy:read'))).status,
      ]).toEqual([path, 401, 403, 200]);
  });

  test('CA-059 CA-074 F-24 an administrator revokes by the documented path, searches, filters and downloads', async () => {
    const { order, chain } = await agent.obtain(['find-me.localhost']);
    const id = idOf(order);
    const find = async (query: string) =>
      ((await read(`/v1/admin/certificates?${query}`)).json['items'] as { certificate_id: string }[]).map(
        ({ certificate_id }) => certificate_id,
      );
    expect([await find('q=FIND-me'), await find('q=find-me&kind=client'), await find('q=find-me&state=revoked')]).toEqual([[id], [], []]);
    const file = await read(`/v1/admin/certificates/${id}/chain.pem`);
    expect([file.text, file.headers['content-disposition']]).toEqual([chain, `attachment; filename="${id}.pem"`]);
    const shown = await read(`/v1/admin/certificates/${id}`);
    expect(shown.json).toMatchObject({ domain: 'find-me.localhost', chain_pem: chain });
    expect((await world.host.fetch(`/v1/admin/certificates/${id}/revoke`, { method: 'POST', body: '{}' })).status).toBe(401);
    expect(
      await world.host.fetch(`/v1/admin/certificates/${id}/revoke`, { method: 'POST', persona: admin, body: '{"reason":5}' }),
    ).toMatchObject({
      status: 200,
      json: { state: 'revoked', reason: '5' },
    });
    expect(await find('q=find-me&state=revoked')).toEqual([id]);
    const orders = (await read('/v1/admin/orders?q=find-me&status=valid')).json as { items: { certificate_id: string }[] };
    expect(orders.items.map(row => row.certificate_id)).toEqual([id]);
    const page = (await read('/v1/admin/certificates?limit=1')).json as { items: unknown[]; next_cursor: string };
    // The newest stands first.
    expect(page.items).toMatchObject([{ certificate_id: id }]);
    expect((await read(`/v1/admin/certificates?limit=1&cursor=${encodeURIComponent(page.next_cursor)}`)).json['items']).not.toEqual(
      page.items,
    );
  });

  test('CA-076 CA-097 health answers anybody, also while mints are shed', async () => {
    expect((await world.host.fetch('/v1/health')).status).toBe(200);
  });
});
