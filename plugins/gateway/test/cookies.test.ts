import { describe, expect, test } from 'vitest';
import { cookieDomain, readCookie, sessionCookie } from '../src/session/cookies.ts';
import { returnPath } from '../src/session/return-path.ts';

describe('the domain of the session cookie', () => {
  test.each([
    ['bff.console.ops.sys.localhost', 'console.ops.sys.localhost'],
    ['bff.shop.prod.acme.example.com', 'shop.prod.acme.example.com'],
    ['bff.shop.example.com', 'shop.example.com'],
    ['bff.shop.com', undefined],
    ['bff.localhost', undefined],
    ['console.ops.sys.localhost', undefined],
    // Its own platform name: one label further would be every host of the platform.
    ['bff.ops.sys.localhost', undefined],
  ])('GWY-016 GWY-017 %s → %s', (host, domain) => {
    expect(cookieDomain(host, 'localhost')).toBe(domain);
  });

  test('GWY-015 it is HttpOnly, Secure and SameSite=None for the whole path', () => {
    const options = { platformDomain: 'localhost', maxAgeS: 60, partitioned: false };
    expect(sessionCookie('v', { ...options, host: 'bff.console.ops.sys.localhost' })).toBe(
      'bff-session=v; Max-Age=60; Domain=console.ops.sys.localhost; Path=/; HttpOnly; Secure; SameSite=None',
    );
    expect(sessionCookie('v', { ...options, host: 'bff.localhost', partitioned: true })).toBe(
      'bff-session=v; Max-Age=60; Path=/; HttpOnly; Secure; Partitioned; SameSite=None',
    );
  });

  test('a cookie is found by its whole name', () => {
    expect(readCookie('xbff-session=a; bff-session=b; bff-session-old=c', 'bff-session')).toBe('b');
    expect(readCookie('bff-session=', 'bff-session')).toBeUndefined();
    expect(readCookie(undefined, 'bff-session')).toBeUndefined();
  });
});

describe('return_to', () => {
  const origin = 'https://console.ops.sys.localhost:8443';
  test.each([['/#/orgs/1?x=1'], ['/a?b=c#d'], ['/'], ['/%2F%2Fevil.example']])('%s comes back as it was given', path => {
    expect(returnPath(path, origin)).toBe(path);
  });
  test.each([
    ['https://evil.example/'],
    ['//evil.example'],
    ['/\\evil.example'],
    ['/\t/evil.example'],
    ['\\\\evil.example'],
    ['javascript:alert(1)'],
    ['evil'],
    [''],
    ['/.//evil.example'],
    [`/${'a'.repeat(3_000)}`],
    ['/a\nb'],
  ])('%j is refused', path => {
    expect(returnPath(path, origin)).toBeUndefined();
  });
  test('nothing at all is the first page', () => {
    expect(returnPath(null, origin)).toBe('/');
  });
});
