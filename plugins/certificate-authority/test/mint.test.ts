import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { EnrollmentSecret, type Operator } from '@platform/sdk';
import { as, openAuthority } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import command from '../src/commands/ca-command.ts';
import { csrOf, stolenCsr, World } from './fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
const DAY = 86_400_000;
const days = (certificate: X509Certificate) => Math.round((Date.parse(certificate.validTo) - Date.now()) / DAY);

describe('who is admitted', () => {
  test('CA-069 H-03 the enrollment secret admits the workload it was made for, and no other', async () => {
    await world.enroll('func', 's3cret');
    expect((await world.mint({ service_name: 'func' }, { secret: 's3cret' })).status).toBe(201);
    expect(await world.mint({ service_name: 'stat' }, { secret: 's3cret' })).toMatchObject({
      status: 401,
      json: { code: 'enrollment_rejected' },
    });
  });

  test('CA-044 H-03 the secret that this machine sealed is looked at first, and the live records of the fleet after it', async () => {
    const { dataDir } = world.stores;
    const own = new EnrollmentSecret(dataDir, () => world.host.clock.now().getTime());
    const secret = Buffer.from(own.value).toString('base64url');
    const reads: string[] = [];
    const ask = async (service_name: string, given: string) => {
      const [call, before] = [vi.spyOn(world.kv, 'call'), reads.length];
      call.mockImplementation((command, ...args) => (reads.push(`${command} ${args[0]}`), Promise.resolve(null)));
      try {
        return [
          (await world.mint({ service_name }, { secret: given })).status,
          reads.slice(before).filter(read => read.startsWith('GET captain:enrollment:')).length,
        ];
      } finally {
        call.mockRestore();
      }
    };
    // The file admits a service of the platform, and no record is read for it; for anybody else, and any other secret, the records decide.
    expect(await ask('acme', secret)).toEqual([201, 0]);
    expect(await ask('lending', secret)).toEqual([401, 2]);
    expect(await ask('acme', 'another')).toEqual([401, 2]);
    await world.enroll('func', 'of-the-record');
    expect((await world.mint({ service_name: 'func' }, { secret: 'of-the-record' })).status).toBe(201);
    own.clear();
    expect(await ask('acme', secret)).toEqual([401, 2]);
  });

  test('F-28 whoever brings no credential, or a wrong one, is told how to bring one', async () => {
    for (const by of [{}, { secret: 'wrong' }])
      expect(await world.mint({ service_name: 'cron' }, by)).toMatchObject({
        status: 401,
        headers: { 'www-authenticate': expect.stringContaining('Bearer') },
      });
  });

  test('CA-069 H-03 a wrong secret is 401, and so is the right one from another machine', async () => {
    await world.enroll('post', 'right');
    await world.enroll('cron', 'right', '10.0.0.9');
    expect(await world.mint({ service_name: 'post' }, { secret: 'wrong' })).toMatchObject({
      status: 401,
      json: { code: 'enrollment_rejected' },
    });
    expect(await world.mint({ service_name: 'cron' }, { secret: 'right' })).toMatchObject({
      status: 401,
      json: { code: 'enrollment_rejected' },
    });
  });

  test('CA-078 the secret is read anew each time: what was withdrawn no longer admits', async () => {
    await world.enroll('flow', 'once');
    expect((await world.mint({ service_name: 'flow' }, { secret: 'once' })).status).toBe(201);
    await world.kv.call('DEL', 'captain:enrollment:127.0.0.1:flow');
    expect((await world.mint({ service_name: 'flow' }, { secret: 'once' })).status).toBe(401);
  });

  test('CA-083 C19 nobody is admitted by nothing', async () => {
    expect(await world.mint({ service_name: 'func' })).toMatchObject({ status: 401, json: { code: 'credential_required' } });
  });

  test('CA-070 CA-092 its own certificate or token admits a workload to its own name only', async () => {
    const func = as.machine('func');
    expect((await world.mint({ service_name: 'func' }, { workload: 'func' })).status).toBe(201);
    expect((await world.mint({ service_name: 'func' }, { persona: func })).status).toBe(201);
    for (const who of [{ workload: 'func' }, { persona: func }])
      expect(await world.mint({ service_name: 'stat' }, who)).toMatchObject({ status: 403, json: { code: 'subject_mismatch' } });
  });

  test('F-20 CA-070 its own certificate-bound token, shown over its own certificate, admits a workload to its own name only', async () => {
    const bound = await world.bound('func');
    expect((await world.mint({ service_name: 'func' }, bound)).status).toBe(201);
    expect(await world.mint({ service_name: 'stat' }, bound)).toMatchObject({ status: 403, json: { code: 'subject_mismatch' } });
    for (const others of [{ token: bound.token }, { token: bound.token, workload: 'stat' }]) {
      expect(await world.mint({ service_name: 'func' }, others)).toMatchObject({ status: 401, json: { code: 'unauthenticated' } });
    }
  });

  test('F-20 CA-071 a workload that holds the operator scope is admitted to any name, by its bound token and by its certificate alone', async () => {
    const operator = await world.bound('host', 'acme:clientcert:issue');
    expect((await world.mint({ service_name: 'func' }, operator)).status).toBe(201);
    expect((await world.mint({ service_name: 'stat' }, { workload: 'host' })).status).toBe(201);
    const narrowed = await world.bound('host');
    expect(await world.mint({ service_name: 'func' }, narrowed)).toMatchObject({ status: 403, json: { code: 'subject_mismatch' } });
  });

  test('F-20 a revoked certificate makes no other', async () => {
    const { cert } = await world.certificateOf('flow');
    const mark = `revoked:cert:${Buffer.from(new X509Certificate(cert).fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')}`;
    await world.kv.call('SET', mark, '1');
    expect(await world.mint({ service_name: 'flow' }, { workload: 'flow' })).toMatchObject({
      status: 401,
      json: { code: 'actor_revoked' },
    });
    await world.kv.call('DEL', mark);
  });

  test('F-20 an operator on the machine makes one from the command line, with a key that only its owner reads, and overwrites nothing', async () => {
    const out = mkdtempSync(join(world.stores.dataDir, 'operator-'));
    const lines: string[] = [];
    const operator: Operator = {
      call: async (_service, method, path, input) => {
        const answer = await world.host.fetch(path, { method, body: JSON.stringify(input?.body), as: await world.certificateOf('host') });
        if (answer.status !== 201) throw new Error(String(answer.json['code']));
        return answer.json as never;
      },
      control: async () => undefined as never,
      print: line => void lines.push(line),
      progress: () => undefined,
    };
    expect(await command.run(['client-cert', 'warehouse', '--days', '30', '--out', out], operator)).toBe(0);
    const [cert, key] = [readFileSync(join(out, 'warehouse.crt'), 'utf8'), readFileSync(join(out, 'warehouse.key'), 'utf8')];
    const leaf = new X509Certificate(cert);
    expect([
      leaf.subject,
      days(leaf),
      leaf.checkPrivateKey(createPrivateKey(key)),
      statSync(join(out, 'warehouse.key')).mode & 0o777,
    ]).toEqual(['CN=m2m-warehouse', 30, true, 0o600]);
    expect(cert).not.toContain('PRIVATE KEY');
    expect(lines.join('\n')).toContain('warehouse.crt');
    await expect(command.run(['client-cert', 'warehouse', '--out', out], operator)).rejects.toThrow('EEXIST');
    for (const args of [[], ['client-cert'], ['client-cert', '../x'], ['client-cert', 'x1', '--days', 'many'], ['mint', 'x1']])
      expect(await command.run(args, operator)).toBe(64);
  });

  test('CA-092 a person acting through the delegator does not become the delegator', async () => {
    const envId = as.user().envId;
    expect(await world.mint({ service_name: 'bff-delegator' }, { persona: as.delegated(envId, 'sys:read') })).toMatchObject({
      status: 403,
      json: { code: 'subject_mismatch' },
    });
  });

  test('CA-071 CA-077 the operator scope admits to any name, beside a wrong secret too', async () => {
    const operator = as.user('acme:clientcert:issue');
    expect((await world.mint({ service_name: 'func' }, { persona: operator })).status).toBe(201);
    expect((await world.mint({ service_name: 'func' }, { persona: operator, secret: 'wrong' })).status).toBe(201);
    expect((await world.mint({ service_name: 'func' }, { persona: as.user('acme:admin') })).status).toBe(403);
  });

  test('CA-091 a token that does not verify is 401', async () => {
    expect(
      await world.host.fetch('/v1/client-cert', { method: 'POST', token: 'not.a.token', body: JSON.stringify({ service_name: 'func' }) }),
    ).toMatchObject({
      status: 401,
      json: { code: 'unauthenticated' },
    });
  });

  const LONG = 'a'.repeat(61);
  test.each(['', 'a', 'Func', '1func', 'func_1', '../etc', 'func-', LONG])('CA-090 "%s" is no workload name', async name => {
    expect(await world.mint({ service_name: name }, { workload: 'func' })).toMatchObject({
      status: 400,
      json: { code: 'invalid_service_name' },
    });
  });
});

describe('what is minted', () => {
  test('CA-032 CA-033 CA-045 CA-072 CN, SAN and usage name the workload; the key is there once, and the event without it', async () => {
    const { status, json, headers } = await world.mint({ service_name: 'stat' }, { workload: 'stat' });
    const leaf = new X509Certificate(json['pem'] as string);
    expect([status, json['cn'], leaf.subject, leaf.subjectAltName, leaf.keyUsage, leaf.ca]).toEqual([
      201,
      'm2m-stat',
      'CN=m2m-stat',
      'URI:urn:platform:workload:stat',
      [CLIENT_AUTH],
      false,
    ]);
    expect(leaf.verify(new X509Certificate(world.stores.authority.pq.files.intermediateCertificate).publicKey)).toBe(true);
    expect([json['thumbprint'], (json['pem'] as string).match(/PRIVATE KEY-----/g)?.length, headers['cache-control']]).toEqual([
      Buffer.from(leaf.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url'),
      2,
      'no-store',
    ]);
    // Leaf, chain and key in one text, and what is shown of it afterwards has no key.
    const pem = json['pem'] as string;
    expect(pem.match(/-----BEGIN [A-Z ]+-----/g)).toEqual([
      ...Array<string>(2).fill('-----BEGIN CERTIFICATE-----'),
      '-----BEGIN PRIVATE KEY-----',
    ]);
    expect(leaf.checkPrivateKey(createPrivateKey(/-----BEGIN PRIVATE KEY[\s\S]+/.exec(pem)?.[0] as string))).toBe(true);
    for (const path of ['', '/chain.pem']) {
      const persona = as.user('acme:admin');
      const { status: seen, text } = await world.host.fetch(`/v1/admin/certificates/${String(json['certificate_id'])}${path}`, { persona });
      expect([path, seen, text.includes('PRIVATE KEY')]).toEqual([path, 200, false]);
    }
    await expect
      .poll(
        () =>
          world.host.bus.find(
            ({ event_type, payload }) =>
              event_type === 'platform:acme:clientcert:issued' && payload['certificate_id'] === json['certificate_id'],
          )?.payload,
      )
      .toEqual({ certificate_id: json['certificate_id'], service_name: 'stat', serial: json['serial'], not_after: json['not_after'] });
    expect(
      (await world.host.by(as.user('acme:admin')).listCertificates({})).items.find(
        ({ certificate_id }) => certificate_id === json['certificate_id'],
      ),
    ).toMatchObject({
      domain: 'm2m-stat',
      kind: 'client',
      source: 'local',
      revoked: false,
    });
  });

  test('CA-093 a certificate that cannot be signed is 500, with its cause for the log alone', async () => {
    const issue = vi.spyOn(world.stores.authority.pq, 'issue').mockRejectedValueOnce(new Error('the disk is full'));
    try {
      const answer = await world.mint({ service_name: 'stat' }, { workload: 'stat' });
      expect(answer).toMatchObject({ status: 500, json: { code: 'issuance_failed' } });
      expect(answer.text).not.toContain('disk');
    } finally {
      issue.mockRestore();
    }
  });

  test('CA-034 C22 its key is stored nowhere', async () => {
    const { json } = await world.mint({ service_name: 'stat' }, { workload: 'stat' });
    const key = /-----BEGIN PRIVATE KEY-----\n([^\n]+)/.exec(json['pem'] as string)?.[1] as string;
    const files = (directory: string): string[] =>
      readdirSync(directory, { withFileTypes: true }).flatMap(entry =>
        entry.isDirectory() ? files(join(directory, entry.name)) : entry.isFile() ? [join(directory, entry.name)] : [],
      );
    const { dataDir } = world.stores;
    const places = ['certificates', 'ca', 'keys', 'logs'].flatMap(name => files(join(dataDir, name)));
    expect(places.length).toBeGreaterThan(5);
    expect(places.filter(path => readFileSync(path, 'utf8').includes(key))).toEqual([]);
    expect(files(join(dataDir, 'certificates')).filter(path => readFileSync(path, 'utf8').includes('PRIVATE KEY'))).toEqual([]);
  });

  test("H-02 with a request of one's own no key is made, and nothing the request asks for is believed", async () => {
    const { status, json } = await world.mint({ service_name: 'func', csr: await csrOf('pq', 'm2m-auth') }, { workload: 'func' });
    const leaf = new X509Certificate(json['pem'] as string);
    expect([status, leaf.subject, leaf.subjectAltName]).toEqual([201, 'CN=m2m-func', 'URI:urn:platform:workload:func']);
    expect(json['pem']).not.toContain('PRIVATE KEY');
  });

  test.each([
    ['classical', 'svc.func', 'svc.func'],
    ['classical', 'svc.auth', 'm2m-func'],
    ['classical', 'm2m-func', 'm2m-func'],
    ['pq', 'svc.func', 'm2m-func'],
  ] as const)('G-ACME-07 a %s key asking for %s is named %s', async (kind, asked, given) => {
    const { json } = await world.mint({ service_name: 'func', csr: await csrOf(kind, asked) }, { workload: 'func' });
    expect(json['cn']).toBe(given);
    expect(new X509Certificate(json['pem'] as string).subject).toBe(`CN=${given}`);
  });

  test.each([
    ['garbage', async () => 'garbage'],
    ['a certificate', async () => world.stores.authority.pq.files.rootCertificate],
    ['RSA of 1024 bits', () => csrOf('weak', 'func')],
  ])('G-ACME-07 %s is no request', async (_, csr) => {
    expect(await world.mint({ service_name: 'func', csr: await csr() }, { workload: 'func' })).toMatchObject({
      status: 400,
      json: { code: 'bad_csr', type: 'urn:ietf:params:acme:error:badCSR' },
    });
  });

  test.each(['pq', 'classical'] as const)(
    'F-15 RFC 2986 a request for a %s key that was signed by another one is refused, for a client and for a listener',
    async kind => {
      const refused = {
        status: 400,
        json: {
          code: 'bad_csr',
          type: 'urn:ietf:params:acme:error:badCSR',
          detail: expect.stringContaining('not signed by the key it carries'),
        },
      };
      expect(await world.mint({ service_name: 'func', csr: await stolenCsr(kind, 'm2m-func') }, { workload: 'func' })).toMatchObject(
        refused,
      );
      expect(
        await world.listener({ domain: 'func.ops.sys.localhost', csr: await stolenCsr(kind, 'x') }, { workload: 'func' }),
      ).toMatchObject(refused);
    },
  );

  test.each([
    [undefined, 365],
    [1, 1],
    [0, 1],
    [-5, 1],
    [3_650, 3_650],
    [3_651, 3_650],
    [1_000_000, 3_650],
  ])('CA-046 CA-047 %s days asked are %s days given', async (asked, given) => {
    const { json } = await world.mint({ service_name: 'func', validity_days: asked }, { workload: 'func' });
    expect(days(new X509Certificate(json['pem'] as string))).toBe(given);
  });

  test('D-04 a certificate ends with its issuer at the latest', async () => {
    const { pq } = await openAuthority(mkdtempSync(join(world.stores.dataDir, 'short-')), { rootDays: 40, intermediateDays: 20 });
    const { certificate, notAfter } = await pq.issue({ commonName: 'm2m-func', names: [], usages: ['client'], days: 3_650 });
    expect([days(new X509Certificate(certificate)), Math.round((notAfter.getTime() - Date.now()) / DAY)]).toEqual([20, 20]);
  });

  test('CA-047 half a day is not a number of days', async () => {
    expect((await world.mint({ service_name: 'func', validity_days: 1.5 }, { workload: 'func' })).status).toBe(400);
  });

  test('CA-051 keys of the authority are for its owner only', () => {
    const { dataDir } = world.stores;
    const modes = ['root.key', 'intermediate.key', 'classical/root.key', 'classical/intermediate.key'].map(
      name => statSync(join(dataDir, 'ca', name)).mode & 0o777,
    );
    expect(modes).toEqual([0o600, 0o600, 0o600, 0o600]);
  });
});
