import { expect, test } from 'vitest';
import { RouteTable } from './route-table.ts';

const table = new RouteTable<string>();
for (const [method, path] of [
  ['GET', '/v1/org'],
  ['POST', '/v1/org'],
  ['GET', '/v1/org/{org_id}'],
  ['GET', '/v1/org/slug'],
  ['PUT', '/v1/org/{id}'],
  ['GET', '/v1/org/{org_id}/env/{env_id}'],
  ['GET', '/v1/files/{*path}'],
  ['GET', '/v1/files/index'],
  ['ANY', '/proxy/{*rest}'],
  ['GET', '/v1/org/{org_id}/{*rest}'],
]) {
  table.add(method as string, path as string, `${method} ${path}`);
}
const find = (method: string, path: string) => {
  const found = table.find(method, path);
  return found && typeof found === 'object' && 'value' in found ? [found.value, found.params] : found;
};

test.each([
  ['GET', '/v1/org', ['GET /v1/org', {}]],
  ['HEAD', '/v1/org', ['GET /v1/org', {}]],
  ['GET', '/v1/org/7', ['GET /v1/org/{org_id}', { org_id: '7' }]],
  ['PUT', '/v1/org/7', ['PUT /v1/org/{id}', { id: '7' }]],
  ['GET', '/v1/org/slug', ['GET /v1/org/slug', {}]],
  ['GET', '/v1/org/a%2Fb/env/%C3%A4', ['GET /v1/org/{org_id}/env/{env_id}', { org_id: 'a/b', env_id: 'ä' }]],
  ['GET', '/v1/org/7/other/x', ['GET /v1/org/{org_id}/{*rest}', { org_id: '7', rest: 'other/x' }]],
  ['GET', '/v1/files/a/b/c.txt', ['GET /v1/files/{*path}', { path: 'a/b/c.txt' }]],
  ['GET', '/v1/files/index', ['GET /v1/files/index', {}]],
  ['GET', '/v1/files/index/more', ['GET /v1/files/{*path}', { path: 'index/more' }]],
  ['PATCH', '/proxy/x', ['ANY /proxy/{*rest}', { rest: 'x' }]],
  ['DELETE', '/v1/org', { methods: ['GET', 'POST'] }],
  ['DELETE', '/v1/org/7', { methods: ['GET', 'PUT'] }],
  ['GET', '/v1/org/', undefined],
  ['GET', '/v1/nothing', undefined],
  ['GET', '/v1/org/%zz', 'malformed'],
  ['GET', '/__proto__/constructor', undefined],
])('%s %s', (method, path, expected) => {
  expect(find(method, path)).toEqual(expected);
});

test('PUT on a literal falls back to the parameter beside it, and two routes of one shape are refused', () => {
  expect(find('PUT', '/v1/org/slug')).toEqual(['PUT /v1/org/{id}', { id: 'slug' }]);
  expect(() => table.add('GET', '/v1/org/{other}', 'again')).toThrow('two routes answer GET /v1/org/{other}');
});

test('F-28 a path that is declared whole says which methods it takes, though a remainder would take any', () => {
  const pages = new RouteTable<string>();
  pages.add('POST', '/v1/sign-in', 'sign in');
  pages.add('GET', '/v1/people/{id}', 'person');
  pages.add('ANY', '/{*path}', 'page');
  expect([pages.find('DELETE', '/v1/sign-in'), pages.find('DELETE', '/v1/people/7')]).toMatchObject([
    { methods: ['POST'], around: { value: 'page' } },
    { methods: ['GET'], around: { value: 'page' } },
  ]);
  expect(pages.find('DELETE', '/v1/other')).toMatchObject({ value: 'page' });
});
