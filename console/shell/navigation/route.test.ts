import { expect, test } from 'vitest';
import { hrefOf, parseRoute, routeElsewhere } from './route.ts';

test('F-11 signing out everywhere is a place of its own', () => {
  expect([parseRoute('#/sign-out'), parseRoute('#/sign-out/everywhere')]).toEqual([
    { name: 'sign-out' },
    { name: 'sign-out', everywhere: true },
  ]);
});

test('CON-032 the named routes', () => {
  expect(
    ['', '#/', '#/bootstrap', '#/sign-in', '#/sign-out', '#/org', '#/org/create', '#/auth/callback'].map(hash => parseRoute(hash).name),
  ).toEqual(['orgs', 'orgs', 'bootstrap', 'sign-in', 'sign-out', 'orgs', 'org-create', 'callback']);
});

test('CON-033 the routes of an org and an environment', () => {
  expect(parseRoute('#/home?org=o')).toEqual({ name: 'home', org: 'o' });
  expect(parseRoute('#/home?env=e')).toEqual({ name: 'home', env: 'e' });
  expect(parseRoute('#/env/create?org=o')).toEqual({ name: 'env-create', org: 'o' });
  expect(parseRoute('#/members?org=o')).toEqual({ name: 'members', org: 'o' });
  expect(parseRoute('#/settings?org=o&env=e')).toEqual({ name: 'settings', env: 'e' });
  expect(parseRoute('#/settings?org=o')).toEqual({ name: 'settings', org: 'o' });
  expect(parseRoute('#/branding?env=e')).toEqual({ name: 'branding', env: 'e' });
  expect(parseRoute('#/branding?org=o')).toEqual({ name: 'branding', org: 'o' });
  expect(parseRoute('#/audit?env=e')).toEqual({ name: 'audit', env: 'e' });
  expect(parseRoute('#/audit?env=e&correlation=c%201')).toEqual({ name: 'audit', env: 'e', correlation: 'c 1' });
});

test('CON-034 the catch-all, with overview as its default page', () => {
  expect(parseRoute('#/orders')).toEqual({ name: 'page', service: 'orders', page: 'overview', props: {} });
  expect(parseRoute('#/orders/gateways/new?env=e')).toEqual({ name: 'page', service: 'orders', page: 'gateways/new', env: 'e', props: {} });
});

test('CON-035 the extra props of the catch-all, and those that a page declares for itself; a place is none of them', () => {
  const route = parseRoute('#/x/y?listing_id=1&instance_id=2&app_id=3&app_instance_id=4&type=5&loan_id=6&env=e&Bad-Name=7');
  expect(route).toMatchObject({
    env: 'e',
    props: { listing_id: '1', instance_id: '2', app_id: '3', app_instance_id: '4', type: '5', loan_id: '6' },
  });
  expect(Object.keys((route as { props: object }).props)).toHaveLength(6);
});

test('CON-036 what resolves to nothing is not found', () => {
  for (const hash of ['#/home', '#/members', '#/env/create', '#/audit', '#/Not-A-Service/x', '#/../x'])
    expect(parseRoute(hash).name).toBe('not-found');
});

test('switching keeps the kind of screen where it can', () => {
  expect(routeElsewhere(parseRoute('#/orders/overview?env=a&type=t'), { env: 'b' })).toBe('#/orders/overview?env=b');
  expect(routeElsewhere(parseRoute('#/settings?env=a'), { org: 'o' })).toBe('#/settings?org=o');
  expect(routeElsewhere(parseRoute('#/members?org=a'), { org: 'o' })).toBe('#/members?org=o');
  expect(routeElsewhere(parseRoute('#/audit?env=a'), { org: 'o' })).toBe('#/home?org=o');
  expect(hrefOf('home', { org: undefined })).toBe('#/home');
});
