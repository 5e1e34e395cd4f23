import type { IncomingMessage } from 'node:http';
import type { CacheOptions } from '@platform/sdk';
import { describe, expect, test } from 'vitest';
import { ManualClock, platformNames, TimedCache } from '@platform/testing';
import { HostMappings, type Mapping } from '../src/host-mappings.ts';
import { backendHeaders, correlationOf, refusalOf } from '../src/request-headers.ts';

const MAPPING: Mapping = {
  hostname: 'echo.prod.acme.localhost',
  env_id: 'e-1',
  org_id: 'o-1',
  app_id: null,
  app_instance_id: 'i-1',
  service: 'echo',
  status: 'active',
  source: 'registry',
  resolved_at: '',
  expires_at: '',
};
const requestOf = (headers: Record<string, string | string[]>) =>
  ({
    httpVersion: '1.1',
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    rawHeaders: Object.entries(headers).flatMap(([name, value]) => [value].flat().flatMap(one => [name, one])),
  }) as unknown as IncomingMessage;
const passed = (headers: Record<string, string | string[]>, mapping: Partial<Mapping> = {}, upgrade = false) =>
  backendHeaders(
    requestOf({ host: MAPPING.hostname, ...headers }),
    { ...MAPPING, ...mapping },
    { correlationId: 'c-1', ip: '10.0.0.9', upgrade },
  );

describe('headers for a backend', () => {
  test('ING-018 ING-019 G-PROXY-02 the resolved context, whole', () => {
    expect(passed({})).toEqual({
      host: MAPPING.hostname,
      'x-platform-hostname': MAPPING.hostname,
      'x-platform-service': 'echo',
      'x-platform-env-id': 'e-1',
      'x-platform-app-id': 'i-1',
      'x-platform-correlation-id': 'c-1',
      'x-platform-caller-service': 'proxy',
      'x-forwarded-for': '10.0.0.9',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': MAPPING.hostname,
    });
  });

  test.each([
    'env-id',
    'app-id',
    'service',
    'hostname',
    'caller-service',
    'org-id',
    'app-instance-id',
    'user-id',
    'scopes',
    'client-cert',
    'target-env-id',
    'csrf',
    'whatever',
  ])('ING-033 G-PROXY-02 x-platform-%s of a client does not pass', name => {
    expect(passed({ [`x-platform-${name}`]: 'forged' }, { env_id: null, app_instance_id: null })[`x-platform-${name}`]).not.toBe('forged');
  });

  test.each(['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'proxy-authorization', 'forwarded', 'x-real-ip'])(
    'G-PROXY-02 %s ends here',
    name => {
      expect(passed({ [name]: 'x' })).not.toHaveProperty(name);
    },
  );

  test("C15 the sign-in pages' CSRF header passes to the identity service only", () => {
    expect([
      passed({ 'x-platform-csrf': 't' }, { service: 'auth' })['x-platform-csrf'],
      passed({ 'x-platform-csrf': 't' })['x-platform-csrf'],
    ]).toEqual(['t', undefined]);
  });

  test('what a WebSocket needs passes only when one is opened', () => {
    expect([
      passed({ 'sec-websocket-key': 'k' })['sec-websocket-key'],
      passed({ 'sec-websocket-key': 'k' }, {}, true)['sec-websocket-key'],
    ]).toEqual([undefined, 'k']);
  });

  test('repeated headers are joined as each joins', () => {
    expect(passed({ cookie: ['a=1', 'b=2'], 'x-many': ['1', '2'] })).toMatchObject({ cookie: 'a=1; b=2', 'x-many': '1, 2' });
  });

  test.each([
    ['abc', true],
    ['A.b_c:d-1', true],
    ['x'.repeat(128), true],
    ['x'.repeat(129), false],
    ['a b', false],
    ['a\tb', false],
    ['ä', false],
    ['', false],
  ])('ING-034 C15 correlation id "%s" is kept: %s', (given, kept) => {
    expect(correlationOf(requestOf({ 'x-platform-correlation-id': given }), () => 'new')).toBe(kept ? given : 'proxy-new');
  });
});

describe('refusals', () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, '1']));
  test.each([
    ['one Host', { Host: 'a' }, undefined],
    ['two', { Host: ['a', 'b'] }, 400],
    ['none', {}, 400],
    ['underscores', { Host: 'a', X_Platform_Env_Id: 'x' }, 400],
    ['one underscore', { Host: 'a', 'x-platform_scopes': 'x' }, 400],
    ['an innocent underscore', { Host: 'a', my_header: 'x' }, undefined],
    ['both lengths', { Host: 'a', 'Content-Length': '1', 'Transfer-Encoding': 'chunked' }, 400],
    ['one length', { Host: 'a', 'Content-Length': '1' }, undefined],
    ['a hundred headers', { Host: 'a', ...many(99) }, undefined],
    ['a hundred and one', { Host: 'a', ...many(100) }, 431],
  ] as [string, Record<string, string | string[]>, number | undefined][])('H-14 ING-037 %s', (_, headers, status) => {
    expect(refusalOf(requestOf(headers))?.status).toBe(status);
  });
});

describe('host mappings', () => {
  const mappings = (resolve: (host: string) => Promise<object>) =>
    new HostMappings({
      platform: platformNames('localhost'),
      clock: new ManualClock(),
      cache: (options: CacheOptions<unknown>) => new TimedCache(options, () => Date.now()),
      catalog: {
        manifests: () => [
          { id: 'web', hosts: ['console'], vertical: 'platform' },
          { id: 'till', vertical: 'retail' },
        ],
      },
      services: { registry: { resolveHostname: ({ query }: { query: { hostname: string } }) => resolve(query.hostname) } },
    } as never);
  const never = async () => Promise.reject(new Error('the platform plane asks nobody'));

  test.each([
    ['web', 'web'],
    ['console', 'web'],
    ['bff.web', 'bff'],
    ['bff.console', 'bff'],
    ['till', undefined],
    ['bff.nobody', undefined],
    ['nobody', undefined],
    ['a.web', undefined],
    ['bff.bff.web', undefined],
  ])('ING-009 G-K-15 %s.ops.sys leads to %s', async (label, service) => {
    expect((await mappings(never).find(`${label}.ops.sys.localhost`))?.service).toBe(service);
  });

  test('KRN-005 an answer from before a change is not remembered after it, and nobody new gets it', async () => {
    const first = Promise.withResolvers<object>();
    const answers = [first.promise, Promise.resolve({ service: 'new', status: 'active' })];
    const subject = mappings(async () => (await answers.shift()) as object);
    const early = subject.find('a.localhost');
    subject.forget(undefined);
    const late = subject.find('a.localhost');
    first.resolve({ service: 'old', status: 'active' });
    expect([(await early)?.service, (await late)?.service, (await subject.find('a.localhost'))?.service]).toEqual(['old', 'new', 'new']);
  });

  test('one question serves all who ask at once', async () => {
    let asked = 0;
    const subject = mappings(async () => {
      asked += 1;
      return { service: 'echo', status: 'active' };
    });
    await Promise.all([1, 2, 3].map(() => subject.find('a.localhost')));
    expect(asked).toBe(1);
  });
});
