import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TENANT, World } from './fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
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

describe('screening', () => {
  const ATTACK = `/search?q=${encodeURIComponent("1' UNION SELECT password FROM users --")}`;

  test('ING-021 is off unless somebody switches it on', async () => {
    expect((await world.ask(tenant().host, { path: ATTACK })).status).toBe(200);
    expect(await figure('waf_detected_total')).toBe(0);
  });

  test.each([
    ['SQL injection in the query', { path: ATTACK }],
    [
      'a script in a form',
      {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: `text=${encodeURIComponent('<script>alert(document.cookie)</script>')}`,
      },
    ],
    [
      'a script in JSON',
      {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ a: [{ b: '<img src=x onerror=alert(1)>' }] }),
      },
    ],
    ['a climb in the query', { path: '/files?name=..%2f..%2f..%2fetc%2fpasswd' }],
    ['SQL injection in a cookie', { headers: { cookie: "id=1' or '1'='1" } }],
  ])('ING-035 %s is 403 where it blocks, and passes where it detects; both are found', async (_, request) => {
    const [blocks, detects] = [tenant({ waf_mode: 'block' }), tenant({ waf_mode: 'detect' })];
    const before = world.seen.length;
    const answer = await world.ask(blocks.host, request);
    expect([answer.status, answer.json['code'], Object.keys(answer.json).toSorted()]).toEqual([
      403,
      'waf_blocked',
      ['code', 'correlation_id', 'status', 'title', 'type'],
    ]);
    expect(world.seen.length).toBe(before);
    expect((await world.ask(detects.host, request)).status).toBe(200);
    const { items } = await world.host.by(as.user('proxy:findings:read')).findings({});
    expect(items.slice(0, 2)).toMatchObject([
      { hostname: detects.host, outcome: 'passed', env_id: detects.env_id },
      { hostname: blocks.host, outcome: 'blocked', env_id: blocks.env_id, reason: expect.any(String), threat: expect.any(String) },
    ]);
  });

  const UNION = "1' UNION SELECT password FROM users --";
  const PROSE = "It's a long story; you and I - or O'Brien & Söhne - know how it began. ".repeat(3_000).slice(0, 201_000);
  const bodies: [string, string, (text: string) => string][] = [
    [
      'a form',
      'application/x-www-form-urlencoded',
      text => `name=${encodeURIComponent("O'Brien & Söhne")}&text=${encodeURIComponent(text)}&last=1`,
    ],
    ['JSON', 'application/json', text => JSON.stringify({ list: [{ name: "O'Brien & Söhne", 'it is': ['fine', text], last: '1' }] })],
    [
      'parts',
      'multipart/form-data; boundary=XX',
      text => `--XX\r\nContent-Disposition: form-data; name="text"\r\n\r\n${text}\r\n--XX--\r\n`,
    ],
    [
      'XML',
      'application/xml',
      text => `<list><name of="O&apos;Brien">Conan</name><text>${text.replaceAll('&', '&amp;').replaceAll("'", '&#39;')}</text></list>`,
    ],
    ['text', 'text/plain', text => text],
  ];

  test.each(bodies)('ING-035 a large body that is %s is screened to its end, and ordinary ones pass whole', async (_, type, written) => {
    const { host } = tenant({ waf_enabled: true });
    const sent = (text: string) => world.ask(host, { method: 'POST', headers: { 'content-type': type }, body: written(text) });
    for (const at of [65_530, 200_000]) {
      const before = world.seen.length;
      expect([at, (await sent(`${PROSE.slice(0, at)} ${UNION} ${PROSE.slice(at)}`)).status, world.seen.length]).toEqual([at, 403, before]);
    }
    expect((await sent(PROSE)).status).toBe(200);
    expect(world.seen.at(-1)?.body).toBe(written(PROSE));
    const short = tenant({ waf_enabled: true, waf_large_bodies: false });
    const late = { method: 'POST', headers: { 'content-type': type }, body: written(`${PROSE} ${UNION}`) };
    expect([(await world.ask(short.host, late)).status, (await world.ask(tenant({ waf_mode: 'detect' }).host, late)).status]).toEqual([
      200, 200,
    ]);
    await expect.poll(() => figure('backend_streams')).toBe(0);
  });
});

describe('rates', () => {
  const times = (host: string, count: number) => world.flood(host, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`, count, 10);

  test('ING-020 ING-036 off by default; switched on, a hundred a second and two hundred at once', async () => {
    expect(await times(tenant().host, 250)).toEqual({ 200: 250 });
    const { host } = tenant({ rate_limit_enabled: true });
    expect(await times(host, 250)).toEqual({ 200: 200, 429: 50 });
    expect(await world.ask(host)).toMatchObject({
      status: 429,
      headers: { 'retry-after': '1', ratelimit: '"edge";r=0;t=1', 'ratelimit-policy': '"edge";q=200;w=2' },
      json: { code: 'rate_limited' },
    });
    await world.host.clock.advance('1s');
    expect(await times(host, 150)).toEqual({ 200: 100, 429: 50 });
  });
});
