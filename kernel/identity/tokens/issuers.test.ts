import { SYSTEM } from '@platform/sdk';
import { expect, test } from 'vitest';
import { Issuers } from './issuers.ts';

const ENV = '018f0000-0000-7000-8000-00000000e001';
const issuers = () => {
  const world = { now: 1_000, away: false, asked: [] as string[], known: new Map([['auth.prod.acme.localhost', ENV]]) };
  const made = new Issuers({
    now: () => world.now,
    system: 'https://auth.ops.sys.localhost:8443',
    originOf: host => `https://${host}:8443`,
    environmentOn: async host => {
      world.asked.push(host);
      if (world.away) throw new Error('away');
      return world.known.get(host);
    },
  });
  return { world, of: made.environmentOf };
};

test('F-32 an issuer is the exact origin of a known environment', async () => {
  const { world, of } = issuers();
  expect(await of('https://auth.ops.sys.localhost:8443')).toBe(SYSTEM.envId);
  expect(await of('https://auth.prod.acme.localhost:8443')).toBe(ENV);
  for (const other of [
    'https://auth.prod.acme.localhost',
    'http://auth.prod.acme.localhost:8443',
    'https://auth.prod.acme.localhost:8443/',
    'https://AUTH.prod.acme.localhost:8443',
    'https://auth.nobody.localhost:8443',
    'x',
    '',
  ]) {
    expect([other, await of(other)]).toEqual([other, undefined]);
  }
  // What cannot be an origin of ours is not asked about.
  expect(world.asked).toEqual(['auth.prod.acme.localhost', 'auth.nobody.localhost']);
});

test('F-32 what is known is asked for again after a while, and outlasts an outage of the identity service', async () => {
  const { world, of } = issuers();
  const issuer = 'https://auth.prod.acme.localhost:8443';
  await of(issuer);
  await of(issuer);
  expect(world.asked).toHaveLength(1);
  world.now += 301_000;
  world.away = true;
  expect(await of(issuer)).toBe(ENV);
  await expect(of('https://auth.new.acme.localhost:8443')).rejects.toThrow('away');
  world.away = false;
  world.known.clear();
  expect(await of(issuer)).toBeUndefined();
});
