import { as } from '@platform/testing';
import { describe, expect, test } from 'vitest';
import { thumbprintOf } from '../certificates/authority.ts';
import { openAuthority } from '../certificates/trust-anchors.ts';
import { AskedProbe } from '../fixtures/asked-probe.ts';

const asked = AskedProbe.use();
const { ada, whoami, refused } = asked;

describe('who calls', () => {
  test('KRN-002 the bearer token counts first, the certificate only where no Authorization header is', async () => {
    expect((await whoami({ persona: ada, as: asked.sender })).json['caller']).toMatchObject({ kind: 'user', userId: ada.id });
    expect((await whoami({ as: asked.sender })).json['caller']).toMatchObject({
      kind: 'machine',
      subject: 'worker',
      bound: true,
      thumbprint: thumbprintOf(asked.sender.cert),
    });
    for (const authorization of [
      'Basic d29ya2VyOng=',
      'Bearer',
      'Bearer a b',
      'Bearer not-a-token',
      `Bearer ${asked.host.mint.token(ada, 'other')}`,
      '',
    ]) {
      expect([authorization.slice(0, 12), (await whoami({ as: asked.sender, headers: { authorization } })).status]).toEqual([
        authorization.slice(0, 12),
        401,
      ]);
    }
    expect((await whoami({})).status).toBe(401);
  });

  test('KRN-003 a delegated token’s acting user is its act.sub, a client certificate beside it or not', async () => {
    const acting = as.delegated(ada.envId, 'probe:things:read');
    for (const credential of [undefined, asked.sender]) {
      const { json } = await whoami({ persona: acting, ...(credential ? { as: credential } : {}) });
      expect(json['caller']).toMatchObject({ kind: 'delegated', userId: acting.id, subject: 'bff-delegator', service: 'bff' });
    }
    const narrowed = await refused({ token: asked.host.mint.token(acting, 'probe', { scope: 'probe:things:write' }) });
    expect(narrowed.code).toBe('policy_denied');
  });

  test('a customer’s token in the hands of the staff has the customer’s rights as far as it names them, and says who acts (G-K-07)', async () => {
    const [customer, staff] = [as.user('probe:things:read'), as.user()];
    for (const persona of [customer, staff]) await whoami({ persona });
    const token = (scope: string, act = staff.id) =>
      asked.host.mint.token(customer, 'probe', { token_type: 'delegated', client_id: 'bff-delegator', scope, act: { sub: act } });
    expect((await whoami({ token: token('probe:things:read') })).json['caller']).toMatchObject({
      kind: 'delegated',
      userId: staff.id,
      subject: customer.id,
      service: 'bff',
    });
    expect((await refused({ token: token('openid') })).code).toBe('policy_denied');
    // Either of the two can be shut out.
    for (const id of [customer.id, staff.id]) {
      await asked.host.process.kv.call('SET', `revoked:sub:${id}`, '1');
      expect((await refused({ token: token('probe:things:read') })).code).toBe('actor_revoked');
      await asked.host.process.kv.call('DEL', `revoked:sub:${id}`);
    }
  });

  test('a token of somebody else’s application is good for its scope, whatever the person may do', async () => {
    const token = (scope: string) => asked.host.mint.token(ada, 'probe', { scope, limited: true });
    expect((await whoami({ token: token('openid probe:things:read') })).status).toBe(200);
    expect((await refused({ token: token('openid') })).code).toBe('policy_denied');
    expect((await whoami({ token: asked.host.mint.token(ada, 'probe', { scope: 'openid' }) })).status).toBe(200);
  });

  test('KRN-020 access and delegated tokens are good as often as they are shown, until they expire', async () => {
    for (const persona of [ada, as.delegated(ada.envId, 'probe:things:read')]) {
      await whoami({ persona });
      const token = asked.host.mint.token(persona, 'probe', { jti: 'the-same' });
      const statuses = await Promise.all(Array.from({ length: 12 }, async () => (await whoami({ token })).status));
      expect(new Set(statuses)).toEqual(new Set([200]));
    }
  });

  test('KRN-021 a mark on the session, the grant, the person or the certificate refuses the next request; without one only time does', async () => {
    const token = asked.host.mint.token(ada, 'probe', {
      jti: 'this-one',
      gid: 'a-grant',
      cnf: { 'x5t#S256': thumbprintOf(asked.sender.cert) },
    });
    for (const mark of [
      `revoked:sid:s-${ada.id}`,
      `revoked:sub:${ada.id}`,
      'revoked:jti:this-one',
      'revoked:gid:a-grant',
      `revoked:cert:${thumbprintOf(asked.sender.cert)}`,
    ]) {
      expect((await whoami({ token, as: asked.sender })).status).toBe(200);
      await asked.host.process.kv.call('SET', mark, '1');
      expect([mark, await refused({ token, as: asked.sender })]).toMatchObject([mark, { status: 401, code: 'actor_revoked' }]);
      await asked.host.process.kv.call('DEL', mark);
    }
    await asked.host.process.kv.call('SET', `revoked:cert:${thumbprintOf(asked.sender.cert)}`, '1');
    expect((await refused({ as: asked.sender })).code).toBe('actor_revoked');
    await asked.host.process.kv.call('DEL', `revoked:cert:${thumbprintOf(asked.sender.cert)}`);
    await asked.host.process.kv.call('SET', 'revoked:sub:worker', '1');
    expect((await refused({ as: asked.sender })).code).toBe('actor_revoked');
    await asked.host.process.kv.call('DEL', 'revoked:sub:worker');
    // The signature was checked and remembered; the time is looked at again every time.
    const short = asked.host.mint.token(ada, 'probe', { exp: asked.now() + 5 });
    expect((await whoami({ token: short })).status).toBe(200);
    expect((await refused({ token: asked.host.mint.token(ada, 'probe', { exp: asked.now() - 31 }) })).detail).toContain('expired');
  });

  test('a certificate of another authority is refused at the connection, and one whose names disagree is none', async () => {
    const foreign = await openAuthority(`${asked.host.stores.dataDir}/foreign`);
    const leaf = await foreign.pq.issue({
      commonName: 'm2m-worker',
      names: ['uri:urn:platform:workload:worker'],
      usages: ['client'],
      days: 1,
    });
    await expect(whoami({ as: { cert: leaf.chain, key: leaf.key as string } })).rejects.toThrow();
    const mixed = await asked.host.stores.authority.pq.issue({
      commonName: 'm2m-worker',
      names: ['uri:urn:platform:workload:other'],
      usages: ['client'],
      days: 1,
    });
    expect((await refused({ as: { cert: mixed.chain, key: mixed.key as string } })).status).toBe(401);
  });

  test('a certificate of another service gives that service’s rights, not those of the one it speaks to', async () => {
    await whoami({ persona: as.machine('other'), as: asked.other });
    expect((await refused({ as: asked.other })).code).toBe('policy_denied');
    expect((await asked.host.fetch('/v1/run', { method: 'POST', as: asked.other })).json['code']).toBe('policy_denied');
  });
});

describe('what the ingress injects', () => {
  const injected = {
    'x-platform-caller-service': 'proxy',
    'x-platform-env-id': ada.envId,
    'x-platform-app-id': 'app-1',
    'x-platform-hostname': 'shop.example.org',
    'x-forwarded-for': '203.0.113.7',
  };

  test('KRN-027 tenant headers count only from the ingress’s certificate, and the backend checks the token against them', async () => {
    const told = await asked.host.fetch('/v1/anyone', { as: asked.ingress, headers: injected });
    expect(told.json).toMatchObject({
      tenant: { envId: ada.envId, appInstanceId: 'app-1' },
      hostname: 'shop.example.org',
      ip: '203.0.113.7',
    });
    for (const [name, credential, headers] of [
      ['nobody', undefined, injected],
      ['another workload', asked.other, injected],
      ['the asked.ingress on its own behalf', asked.ingress, { ...injected, 'x-platform-caller-service': 'bff' }],
    ] as const) {
      const { json } = await asked.host.fetch('/v1/anyone', { ...(credential ? { as: credential } : {}), headers });
      expect([name, json['tenant'], json['ip']]).toEqual([name, {}, '127.0.0.1']);
    }
    expect((await whoami({ persona: ada, as: asked.ingress, headers: injected })).status).toBe(200);
    expect(await refused({ persona: ada, as: asked.ingress, headers: { ...injected, 'x-platform-env-id': 'another-env' } })).toMatchObject({
      status: 403,
      code: 'tenant_mismatch',
    });
    const acting = as.delegated(ada.envId, 'probe:things:read');
    expect(
      (await whoami({ persona: acting, as: asked.ingress, headers: { ...injected, 'x-platform-env-id': 'another-env' } })).status,
    ).toBe(200);
  });

  test('the ingress is never the caller of what it forwards', async () => {
    await whoami({ persona: as.machine('proxy', 'probe:things:read'), as: asked.ingress });
    expect((await whoami({ as: asked.ingress })).json['caller']).toMatchObject({ subject: 'proxy' });
    expect(await refused({ as: asked.ingress, headers: injected })).toMatchObject({ status: 401, code: 'unauthenticated' });
    expect((await asked.host.fetch('/v1/anyone', { as: asked.ingress, headers: injected })).json['peer']).toBeUndefined();
    expect(
      await refused({
        token: asked.host.mint.token(ada, 'probe', { cnf: { 'x5t#S256': thumbprintOf(asked.ingress.cert) } }),
        as: asked.ingress,
        headers: injected,
      }),
    ).toMatchObject({ status: 401 });
  });
});

test('scopes are live: a change of the access model counts at the next request', async () => {
  const eve = as.user('probe:things:read');
  expect((await whoami({ persona: eve })).status).toBe(200);
  const token = asked.host.mint.token(eve, 'probe');
  await whoami({ persona: { ...eve, scopes: [] } });
  expect((await whoami({ token })).status).toBe(200);
  await asked.host.process.kv.call('INCR', `authz:{${eve.envId}}`);
  expect((await whoami({ token })).status).toBe(403);
});
