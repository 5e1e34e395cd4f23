import { as } from '@platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Directory } from './fixtures/directory.ts';
import { World } from './fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

const SCHEMAS = ['urn:ietf:params:scim:api:messages:2.0:Error'];
const names = (value: object) => Object.keys(value).sort();

test('IDN-020 what the gate before SCIM refuses, it refuses as RFC 7644 says', async () => {
  const directory = await Directory.open(world, 'scim:read');
  const nameless = await world.host.fetch('/scim/v2/Users');
  expect(nameless.headers['www-authenticate']).toContain('Bearer');
  const answers = [
    nameless,
    await world.host.fetch('/scim/v2/Users', { token: 'not-a-token' }),
    await world.host.fetch('/scim/v2/Users', { persona: as.user('auth:users:read') }),
    await directory.send('POST', '/Users', {}),
    await directory.send('GET', '/Users/%zz'),
    await directory.send('GET', '/Groups'),
    await directory.send('PUT', '/Users', {}),
    await directory.send('GET', '/Users', undefined, { 'x-platform-target-env-id': '018f0000-0000-7000-8000-00000000ffff' }),
    await directory.send(
      'GET',
      '/Users',
      undefined,
      Object.fromEntries(Array.from({ length: 110 }, (_, index) => [`x-filler-${index}`, '1'])),
    ),
  ];
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 403, 403, 400, 404, 405, 403, 431]);
  for (const { status, headers, json } of answers) {
    expect(headers['content-type']).toBe('application/scim+json; charset=utf-8');
    expect([json['schemas'], json['status']]).toEqual([SCHEMAS, String(status)]);
    expect(json['detail']).toEqual(expect.stringMatching(/\w/));
    expect(names(json)).toEqual(status === 400 ? ['detail', 'schemas', 'scimType', 'status'] : ['detail', 'schemas', 'status']);
    expect(headers['x-platform-correlation-id']).toBeDefined();
  }
});

test('what is refused before the protocol is reached is refused as RFC 6749 says', async () => {
  const elsewhere = await world.reach('/oauth/token', { method: 'POST', host: 'auth.unknown.localhost' });
  expect([elsewhere.status, elsewhere.headers['content-type'], elsewhere.json]).toEqual([
    404,
    'application/json; charset=utf-8',
    { error: 'invalid_request', error_description: 'auth.unknown.localhost is not a sign-in host.' },
  ]);
});

test('the interface description says in which form a route refuses', async () => {
  const { json } = await world.host.fetch('/openapi.json');
  const paths = json['paths'] as Record<string, { get: { responses: Record<string, { content: object }> } }>;
  const responses = paths['/scim/v2/{rest}']?.get.responses;
  for (const status of ['400', '403', '404', '409', '503'])
    expect([status, names(responses?.[status]?.content ?? {})]).toEqual([status, ['application/scim+json']]);
});
