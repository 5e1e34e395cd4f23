import { join } from 'node:path';
import { X509Certificate } from 'node:crypto';
import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CertificateStore } from '../src/certificates/certificate-store.ts';
import { csrOf, World } from './fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const DAY = 86_400_000;
const days = (certificate: X509Certificate) => Math.round((Date.parse(certificate.validTo) - Date.now()) / DAY);

describe('listener certificates', () => {
  test('CA-008 H-01 the owner of the label gets one, for the days set, without a key', async () => {
    const { status, json } = await world.listener(
      { domain: 'func.ops.sys.localhost', csr: await csrOf('classical', 'x') },
      { workload: 'func' },
    );
    const leaf = new X509Certificate(json['chain_pem'] as string);
    expect([status, leaf.subjectAltName, leaf.keyUsage, days(leaf)]).toEqual([200, 'DNS:func.ops.sys.localhost', [SERVER_AUTH], 90]);
    expect(json['chain_pem']).not.toContain('PRIVATE KEY');
  });

  test.each([
    ['web', 'console.ops.sys.localhost', 200],
    ['web', 'web.ops.sys.localhost', 200],
    ['func', 'console.ops.sys.localhost', 403],
    ['func', 'auth.ops.sys.localhost', 403],
    ['func', 'func.prod.acme.localhost', 403],
    ['func', 'localhost', 403],
    ['proxy', 'auth.ops.sys.localhost', 200],
    ['proxy', 'func.prod.acme.localhost', 200],
    ['proxy', 'example.org', 404],
    ['func', 'func.example.org', 404],
  ])('H-01 CA-021 %s asking for %s is %i', async (workload, domain, status) => {
    const answer = await world.listener({ domain, csr: await csrOf('classical', domain) }, { workload });
    expect(answer.status).toBe(status);
    if (status !== 200) expect(answer.json['code']).toBe(status === 403 ? 'name_not_owned' : 'name_not_local');
  });

  test("H-01 one name that is another's spoils the request", async () => {
    const answer = await world.listener(
      { domain: 'func.ops.sys.localhost', domains: ['auth.ops.sys.localhost'], csr: await csrOf('classical', 'x') },
      { workload: 'func' },
    );
    expect(answer).toMatchObject({ status: 403, json: { code: 'name_not_owned' } });
  });

  test('CA-043 CA-050 CA-083 the secret in X-Platform-Bootstrap-Enrollment makes a client certificate, and neither a database login nor a listener', async () => {
    await world.enroll('sky', 'sky-secret');
    const sent = (path: string, body: object, headers: Record<string, string> = { 'X-Platform-Bootstrap-Enrollment': 'sky-secret' }) =>
      world.host.fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
    const made = await sent('/v1/client-cert', { service_name: 'sky' });
    expect([made.status, made.json['cn']]).toEqual([201, 'm2m-sky']);
    expect(await sent('/v1/client-cert', { service_name: 'sky', csr: await csrOf('classical', 'svc.sky') })).toMatchObject({
      status: 401,
      json: { code: 'enrollment_rejected' },
    });
    expect(await sent('/v1/certificates/fetch', { domain: 'sky.ops.sys.localhost', csr: await csrOf('pq', 'x') })).toMatchObject({
      status: 401,
      json: { code: 'credential_required' },
    });
    expect((await world.mint({ service_name: 'sky', csr: await csrOf('classical', 'svc.sky') }, { workload: 'sky' })).json['cn']).toBe(
      'svc.sky',
    );
    expect((await sent('/v1/client-cert', { service_name: 'sky' }, { 'x-enrollment': 'sky-secret' })).status).toBe(401);
  });
});

describe('trust anchors', () => {
  test('CA-005 CA-001 G-ACME-01 roots and intermediates are public, post-quantum first, one by name, with an ETag', async () => {
    for (const [part, member] of [
      ['root', 'rootCertificate'],
      ['intermediate', 'intermediateCertificate'],
    ] as const) {
      const { pq, classical } = world.stores.authority;
      const [both, first, second] = await Promise.all(
        ['', '?alg=pq', '?alg=classical'].map(query => world.host.fetch(`/v1/ca/${part}.crt${query}`)),
      );
      expect([both?.text, first?.text, second?.text]).toEqual([
        pq.files[member] + classical.files[member],
        pq.files[member],
        classical.files[member],
      ]);
      expect([both?.status, both?.headers['content-type']?.toString().split(';')[0]]).toEqual([200, 'application/x-pem-file']);
      expect(new Set([both, first, second].map(answer => answer?.headers['etag'])).size).toBe(3);
      expect((await world.host.fetch(`/v1/ca/${part}.crt`)).headers['etag']).toBe(both?.headers['etag']);
    }
  });

  test('no key is served', async () => {
    for (const path of ['/v1/ca/root.key', '/v1/ca/intermediate.key', '/v1/ca/../ca/root.key'])
      expect((await world.host.fetch(path)).status).toBe(404);
  });
});

describe('revocation', () => {
  test('CA-059 CA-068 H-02 the mark is in the store and the event is out; a repeat answers the same and tells nothing', async () => {
    const { json } = await world.mint({ service_name: 'func' }, { workload: 'func' });
    const id = json['certificate_id'] as string;
    const first = await world.revoke(id);
    expect(first).toMatchObject({ status: 200, json: { certificate_id: id, revoked: true, reason: '4' } });
    expect(await world.kv.call('EXISTS', `revoked:cert:${String(json['thumbprint'])}`)).toBe(1);
    expect((await world.revoke(id)).json).toEqual(first.json);
    const { json: other } = await world.mint({ service_name: 'func' }, { workload: 'func' });
    await world.revoke(other['certificate_id'] as string);
    await expect
      .poll(() =>
        world.host.bus.some(
          ({ event_type, payload }) =>
            event_type === 'platform:acme:certificate:revoked' && payload['certificate_id'] === other['certificate_id'],
        ),
      )
      .toBe(true);
    expect(
      world.host.bus
        .filter(({ event_type, payload }) => event_type === 'platform:acme:certificate:revoked' && payload['certificate_id'] === id)
        .map(({ payload }) => payload),
    ).toEqual([{ certificate_id: id, serial: json['serial'], domain: 'm2m-func' }]);
  });

  test('F-15 a revocation is a row of the audit trail, with who did it; a repeat is none', async () => {
    const { json } = await world.mint({ service_name: 'func' }, { workload: 'func' });
    const id = json['certificate_id'] as string;
    const rows = () =>
      world.host.audits.filter(({ action, resource }) => action === 'acme.certificate.revoked' && (resource as { id: string }).id === id);
    const operator = as.user('acme:admin');
    await world.revoke(id, operator);
    await world.revoke(id, operator);
    await expect.poll(() => rows().length).toBeGreaterThan(0);
    const { json: last } = await world.mint({ service_name: 'func' }, { workload: 'func' });
    await world.revoke(last['certificate_id'] as string);
    await expect
      .poll(() => world.host.audits.some(({ resource }) => (resource as { id: string } | undefined)?.id === last['certificate_id']))
      .toBe(true);
    expect(rows()).toEqual([
      expect.objectContaining({ actor: { kind: 'user', id: operator.id }, resource: { type: 'certificate', id }, outcome: 'success' }),
    ]);
  });

  test('H-02 a store that came back empty is told again, and unknown certificates are 404', async () => {
    const { json } = await world.mint({ service_name: 'func' }, { workload: 'func' });
    await world.revoke(json['certificate_id'] as string);
    const mark = `revoked:cert:${String(json['thumbprint'])}`;
    await world.kv.call('DEL', mark);
    await world.host.clock.advance('5s');
    await expect.poll(() => world.kv.call('EXISTS', mark)).toBe(1);
    expect(await world.revoke('018f0000-0000-7000-8000-00000000dead')).toMatchObject({
      status: 404,
      json: { code: 'certificate_not_found' },
    });
  });

  test('H-02 what was revoked before a restart is still revoked after it', async () => {
    const { json } = await world.mint({ service_name: 'func' }, { workload: 'func' });
    await world.revoke(json['certificate_id'] as string);
    const store = new CertificateStore(join(world.stores.dataDir, 'certificates'));
    await store.load();
    expect(store.revoked(new Date()).map(({ thumbprint }) => thumbprint)).toContain(json['thumbprint']);
  });
});
