import { join } from 'node:path';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '@platform/kernel/storage/postgres/embedded-postgres';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { readRecord } from '@platform/testing';
import { Directory, USER } from '../fixtures/directory.ts';
import { type Answer, CHOSEN, World } from '../fixtures/world.ts';

/** As long as `until` is not there yet, whoever hashes waits; then hashes are made of nothing. */
const hashing = vi.hoisted(() => ({ until: undefined as Promise<void> | undefined }));
vi.mock('@node-rs/argon2', async original => {
  const argon2 = await original<typeof import('@node-rs/argon2')>();
  const hash: typeof argon2.hash = async (...given) => (hashing.until ? hashing.until.then(() => 'none') : argon2.hash(...given));
  return { ...argon2, hash };
});

let world: World;
let directory: Directory;
let again: EmbeddedPostgres | undefined;
beforeAll(async () => {
  world = await World.start();
  directory = await Directory.open(world, 'scim:read', 'scim:write');
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await again?.stop();
});

const VERBS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'];
const LIMIT = 1_048_576;
/** Some verb, path and body of every kind of request that brings one. */
const WRITES = [
  ['POST', '/Users'],
  ['PUT', '/Users/018f0000-0000-7000-8000-00000000dead'],
  ['PATCH', '/Users/018f0000-0000-7000-8000-00000000dead'],
  ['POST', '/Users/.search'],
  ['POST', '/Bulk'],
] as const;

/** RFC 7644, 3.12. */
function expectRefusal({ headers, json }: Answer, status: number): void {
  expect({ type: headers['content-type'], json }).toEqual({
    type: 'application/scim+json; charset=utf-8',
    json: { schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'], status: String(status), detail: expect.stringMatching(/\w/) },
  });
}

describe('nothing is at the root', () => {
  test.each(['', '/', '?filter=userName', '/?count=1'])('"%s", whatever the verb', async rest => {
    for (const method of VERBS) {
      const answer = await directory.send(method, rest, method === 'GET' ? undefined : {});
      expect([method, answer.status]).toEqual([method, 404]);
      expectRefusal(answer, 404);
    }
    const head = await directory.send('HEAD', rest);
    expect([head.status, head.headers['content-type'], head.text]).toEqual([404, 'application/scim+json; charset=utf-8', '']);
  });
});

describe('a body', () => {
  const large = JSON.stringify({ schemas: [USER], userName: 'x'.repeat(LIMIT) });

  test.each(WRITES)('%s %s that is too large is refused, whether its length was said or not', async (method, path) => {
    const said = await directory.send(method, path, large);
    expect([said.status, said.headers['connection']]).toEqual([413, 'close']);
    expectRefusal(said, 413);
    const unsaid = await directory.send(method, path, large, { 'transfer-encoding': 'chunked', 'content-length': [] });
    expect([unsaid.status, unsaid.headers['connection']]).toEqual([413, 'close']);
    expectRefusal(unsaid, 413);
  });

  test.each(WRITES)('%s %s of another type is refused', async (method, path) => {
    for (const type of [
      'text/plain',
      'application/xml',
      'application/x-www-form-urlencoded',
      'application/jsonp',
      'application/problem+json',
    ]) {
      const answer = await directory.send(method, path, { schemas: [USER] }, { 'content-type': type });
      expect([type, answer.status]).toEqual([type, 415]);
      expectRefusal(answer, 415);
    }
  });

  test.each(['application/scim+json', 'application/json', 'Application/SCIM+JSON; charset=utf-8'])('may be %s', async type => {
    const answer = await directory.send('POST', '/Users', { schemas: [USER], userName: `typed-${type}` }, { 'content-type': type });
    expect(answer.status).toBe(201);
  });
});

describe('later, with the time to wait', () => {
  test('while as many passwords are hashed as may wait for it', async () => {
    const held = Promise.withResolvers<void>();
    hashing.until = held.promise;
    const users = Array.from({ length: 205 }, (_, n) =>
      directory.send('POST', '/Users', { schemas: [USER], userName: `busy-${n}`, password: CHOSEN }),
    );
    const refused = await Promise.race(users);
    held.resolve();
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '2']);
    expectRefusal(refused, 503);
    expect((await Promise.all(users)).filter(({ status }) => status === 201)).toHaveLength(204);
  });

  test('without the key-value store nobody is let in unchecked', async () => {
    const record = readRecord(join(world.dataDir, 'run', 'kv.json'));
    process.kill(record?.pid as number, 'SIGSTOP');
    try {
      const answer = await directory.send('GET', '/Users');
      expect([answer.status, answer.headers['retry-after']]).toEqual([503, expect.stringMatching(/^\d+$/)]);
      expectRefusal(answer, 503);
    } finally {
      process.kill(record?.pid as number, 'SIGCONT');
    }
  });

  test('without the database', async () => {
    const { authority } = world.stores;
    const leaf = await authority.classical.issue({
      commonName: 'postgres.platform.internal',
      names: ['dns:postgres.platform.internal', 'ip:127.0.0.1'],
      usages: ['server'],
      days: 1,
    });
    const tls = { ca: authority.classical.files.rootCertificate, cert: leaf.chain, key: leaf.key as string };
    await (await startEmbeddedPostgres({ dataDir: world.dataDir, tls })).stop();
    const answers = [
      await directory.send('GET', '/Users'),
      await directory.send('GET', '/Users/018f0000-0000-7000-8000-00000000dead'),
      await directory.send('POST', '/Users', { schemas: [USER], userName: 'nobody-hears' }),
      await directory.send('POST', '/Users/.search', { schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'] }),
    ];
    again = await startEmbeddedPostgres({ dataDir: world.dataDir, tls });
    for (const answer of answers) {
      expect([answer.status, answer.headers['retry-after']]).toEqual([503, expect.stringMatching(/^\d+$/)]);
      expectRefusal(answer, 503);
    }
  });
});
