import { createHash } from 'node:crypto';
import { as } from '@platform/testing';
import { describe, expect, test } from 'vitest';
import { newId } from '../base/ids.ts';
import { manifestOf } from '../base/manifest.ts';
import { probeOf } from '../test/probe.ts';
import { RequestedProbe } from './fixtures/requested-probe.ts';

const asked = RequestedProbe.use();
const { reader, world, writer } = asked;

describe('a create under an Idempotency-Key (G-K-03)', () => {
  const make = (key: string, name: string, persona = writer) =>
    asked.host.fetch('/v1/things', { method: 'POST', persona, headers: { 'idempotency-key': key }, body: JSON.stringify({ name }) });
  const made = (name: string) => world.calls.filter(call => call === `create ${name}`).length;

  test('F-08 happens once: the repeat is given the first answer and says so, at once, in parallel and after a restart of nothing', async () => {
    const [first, ...others] = await Promise.all(Array.from({ length: 6 }, () => make('key-1', 'once')));
    const answered = [first, ...others].filter(answer => answer?.status === 201);
    for (const answer of [first, ...others]) expect([201, 409]).toContain(answer?.status);
    const again = await make('key-1', 'once');
    expect(again).toMatchObject({ status: 201, json: answered[0]?.json });
    expect(again.headers['idempotent-replay']).toBe('true');
    expect(again.headers['etag']).toBe('"1"');
    expect(made('once')).toBe(1);
  });

  test('F-08 another request under the same key is refused, another caller has keys of its own, and a refusal is not kept', async () => {
    await make('key-2', 'mine');
    expect(await make('key-2', 'other')).toMatchObject({ status: 409, json: { code: 'idempotency_key_reused' } });
    expect((await make('key-2', 'theirs', as.user('probe:things:write'))).status).toBe(201);
    expect((await make('key-3', 'taken')).status).toBe(409);
    expect((await make('key-3', 'free')).status).toBe(201);
    expect(await make('käse', 'x')).toMatchObject({ status: 400, json: { code: 'malformed' } });
  });

  test('F-08 it stands for 24 hours', async () => {
    await make('key-4', 'daily');
    await asked.host.clock.leap('23h');
    expect((await make('key-4', 'daily')).headers['idempotent-replay']).toBe('true');
    await asked.host.clock.leap('2h');
    expect((await make('key-4', 'daily')).headers['idempotent-replay']).toBeUndefined();
    expect(made('daily')).toBe(2);
  });

  test('F-08 what took effect and lost its answer is not done again; what never began is', async () => {
    await make('key-5', 'begun');
    const sql = await asked.host.sql();
    await sql`update idempotent_answers set status = null, body = null where key = 'key-5'`;
    expect(await make('key-5', 'begun')).toMatchObject({ status: 409, json: { code: 'idempotency_in_progress' } });
    await asked.host.clock.advance('3m');
    expect(await make('key-5', 'begun')).toMatchObject({ status: 409, json: { code: 'idempotency_answer_gone' } });
    await sql`update idempotent_answers set committed = false where key = 'key-5'`;
    expect((await make('key-5', 'begun')).status).toBe(201);
    expect(made('begun')).toBe(2);
  });

  test('F-08 the transaction of a request says with its commit that the key has taken effect', async () => {
    const held = make('key-7', 'held');
    const sql = await asked.host.sql();
    const rows = async () => [...(await sql<object[]>`select committed, status from idempotent_answers where key = 'key-7'`)];
    await expect.poll(rows).toEqual([{ committed: true, status: null }]);
    world.answer.resolve();
    expect((await held).status).toBe(201);
  });

  test('F-08 a secret that is shown once is kept nowhere', async () => {
    const ask = () => asked.host.fetch('/v1/issue', { method: 'POST', persona: writer, headers: { 'idempotency-key': 'key-6' } });
    const secret = (await ask()).json['secret'] as string;
    expect(await ask()).toMatchObject({ status: 409, json: { code: 'idempotency_answer_gone' } });
    const sql = await asked.host.sql();
    expect(JSON.stringify([...(await sql<object[]>`select * from idempotent_answers`)])).not.toContain(secret);
  });
});

describe('an Idempotency-Key of somebody whom the kernel has not asked', () => {
  const drop = (path: string, text: string, key: string, cookie?: string) =>
    asked.host.fetch(path, {
      method: 'POST',
      headers: { 'idempotency-key': key, ...(cookie ? { cookie } : {}) },
      body: path === '/v1/drop' ? JSON.stringify({ text }) : text,
    });

  test('is kept so that nobody who reads the table can try what the body held', async () => {
    await drop('/v1/drop', 'a password', 'hidden-1');
    await drop('/v1/raw-drop', 'a password', 'hidden-2');
    const sql = await asked.host.sql();
    const rows = await sql<{ key: string; fingerprint: Uint8Array }[]>`
      select key, fingerprint from idempotent_answers where caller like 'anonymous:%'`;
    expect(rows.length).toBeGreaterThanOrEqual(2);
    expect(rows.filter(({ key }) => !key.startsWith('sha256:'))).toEqual([]);
    const plain = createHash('sha256')
      .update(JSON.stringify(['drop', {}, {}, { text: 'a password' }, undefined]))
      .digest('hex');
    const named = createHash('sha256')
      .update(JSON.stringify(['probe.drop', {}, {}, { text: 'a password' }, undefined]))
      .digest('hex');
    const kept = rows.map(({ fingerprint }) => Buffer.from(fingerprint).toString('hex'));
    expect(kept.filter(hash => hash === plain || hash === named)).toEqual([]);
  });

  test.each(['/v1/drop', '/v1/raw-drop'])('G-K-03 holds for the same request, and for the same cookie (%s)', async path => {
    const key = `anonymous${path}`;
    const first = await drop(path, 'one', key);
    const again = await drop(path, 'one', key);
    expect([again.status, again.json, again.headers['idempotent-replay']]).toEqual([first.status, first.json, 'true']);
    expect(first.json['drop_id']).toEqual(expect.any(String));
    expect((await drop(path, 'two', key)).json['drop_id']).not.toBe(first.json['drop_id']);
    const ada = await drop(path, 'one', key, 'sid=ada');
    expect(ada.json['drop_id']).not.toBe(first.json['drop_id']);
    expect((await drop(path, 'one', key, 'sid=ada')).json).toEqual(ada.json);
    expect(await drop(path, 'two', key, 'sid=ada')).toMatchObject({ status: 409, json: { code: 'idempotency_key_reused' } });
  });

  test('G-K-03 a cookie that an answer sets is kept nowhere', async () => {
    expect((await drop('/v1/drop', 'cookie', 'cookie-1')).status).toBe(200);
    expect(await drop('/v1/drop', 'cookie', 'cookie-1')).toMatchObject({ status: 409, json: { code: 'idempotency_answer_gone' } });
    const sql = await asked.host.sql();
    expect(JSON.stringify([...(await sql<object[]>`select * from idempotent_answers`)])).not.toContain('a-secret');
  });

  test('G-K-03 a raw door keeps no refusal, and one that forgot to look at the key is a fault of ours', async () => {
    const before = world.calls.length;
    for (const _ of [1, 2]) expect((await drop('/v1/raw-drop', 'bad', 'bad-1')).status).toBe(400);
    expect(world.calls.slice(before)).toEqual(['raw drop bad', 'raw drop bad']);
    expect(await drop('/v1/raw-forgot', 'x', 'forgot-1')).toMatchObject({ status: 500, json: { code: 'answer_invalid' } });
    expect((await asked.host.fetch('/v1/raw-forgot', { method: 'POST', body: 'x' })).status).toBe(200);
  });
});

describe('the version of a record', () => {
  const rename = (tag: string) =>
    asked.host.fetch('/v1/things/t1', { method: 'PUT', persona: writer, headers: { 'if-match': tag }, body: '{"name":"x"}' });

  test('F-08 If-Match takes one of several versions or any; a weak, foreign or old one is 412 and names the version there is', async () => {
    for (const tag of ['"3"', '"2", "3"', '*']) expect((await rename(tag)).status).not.toBe(412);
    for (const tag of ['"2"', 'W/"3"', '"three"', '3']) {
      const answer = await rename(tag);
      expect([answer.status, answer.json['code'], answer.headers['etag']]).toEqual([412, 'precondition_failed', '"3"']);
    }
  });

  test('G-K-03 If-Match is never passed over: what has no version refuses it, and a change that did not compare it is a fault of ours', async () => {
    const send = (method: string, path: string, body?: string) =>
      asked.host.fetch(path, { method, persona: writer, headers: { 'if-match': '"1"' }, ...(body ? { body } : {}) });
    const before = world.calls.length;
    for (const refused of [await send('POST', '/v1/things', '{"name":"unversioned"}'), await send('POST', '/v1/things/t1/archive')])
      expect([refused.status, refused.json['code']]).toEqual([412, 'precondition_unsupported']);
    expect(world.calls.slice(before)).toEqual([]);
    expect((await asked.host.fetch('/v1/things/t1', { persona: reader, headers: { 'if-match': '"1"' } })).status).toBe(200);
    const forgotten = await send('DELETE', '/v1/things/t1');
    expect([forgotten.status, forgotten.json['code']]).toEqual([500, 'answer_invalid']);
  });
});

describe('the state of an environment', () => {
  test('F-13 routes of a vertical are about the own environment unless they say otherwise, those of the platform about none', () => {
    expect([manifestOf(probeOf('lab').contract, '1.0.0').env, manifestOf(asked.plugin.contract, '1.0.0').env]).toEqual(['own', 'any']);
  });

  const write = (persona = writer) => asked.host.fetch('/v1/things', { method: 'POST', persona, body: '{"name":"stated"}' });
  const say = (persona: { envId?: string | undefined }, state: string) =>
    asked.host.process.kv.call('SET', `env-state:{${persona.envId}}`, state);

  test.each([
    ['suspended', 409, 'env_suspended'],
    ['archived', 409, 'env_archived'],
    ['absent', 403, 'target_denied'],
  ])('F-13 nothing changes in one that is %s; reading goes on, and the next request hears of every change', async (state, status, code) => {
    const person = as.userIn(newId(), 'probe:things:read', 'probe:things:write');
    expect((await write(person)).status).toBe(201);
    await say(person, state);
    expect(await write(person)).toMatchObject({ status, json: { code } });
    expect((await asked.host.fetch('/v1/things', { persona: person })).status).toBe(200);
    await say(person, 'active');
    expect((await write(person)).status).toBe(201);
  });

  test('F-13 a workload of the platform goes on, one of a vertical does not', async () => {
    const env = newId();
    await say({ envId: env }, 'suspended');
    const as_ = async (vertical: string) => {
      const name = vertical === 'platform' ? 'func' : 'till';
      const persona = { ...as.machine(name, 'probe:things:write'), vertical };
      return asked.host.fetch(`/v1/things?target_env_id=${env}`, {
        method: 'POST',
        persona,
        as: await asked.host.workload(name),
        body: '{"name":"by-workload"}',
      });
    };
    expect((await as_('platform')).status).toBe(201);
    expect((await as_('retail')).status).toBe(409);
  });
});
