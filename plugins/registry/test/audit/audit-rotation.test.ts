import { createPrivateKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { boot } from '@platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keyIdOf } from '../../src/audit/proof/audit-key.ts';
import { introduction, type KeyEntry, succession } from '../../src/audit/proof/key-succession.ts';
import plugin from '../../src/plugin.ts';
import { addAuditKey } from '../fixtures/audit-key.ts';
import { Trail } from '../fixtures/trail.ts';
import { refusal, World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

const keys = () => world.host.by(world.admin()).auditKeyRows();
const rotate = (keyId: string) => world.host.by(world.admin()).rotateAuditKey({ params: { key_id: keyId } });
/** A key of the next line of the secret comes into force. */
async function rotated(): Promise<string> {
  addAuditKey(world.stores.dataDir);
  const next = (await keys()).items[0]?.key_id as string;
  await rotate(next);
  return next;
}
const signersOf = async ({ envId }: Trail) =>
  (await world.sql<{ key_id: string }[]>`select key_id from audit_anchors where env_id = ${envId} order by day`).map(
    ({ key_id }) => key_id,
  );

test('REG-004 the next key comes into force when an administrator says so; the old one introduced it, and confirms nothing any more', async () => {
  const trail = new Trail(world);
  await trail.aged(3, 2);
  await trail.signed();
  await trail.record(1);
  await trail.signed();
  const [first] = (await keys()).items;
  expect(first).toMatchObject({ seq: 1, status: 'current', since: null, by_previous: null });
  // 1 Without a next key there is nothing to rotate to, and only the one that is meant comes into force.
  expect(await refusal(rotate(first?.key_id as string))).toEqual([409, 'audit_key_next_missing']);
  expect(await refusal(world.host.by(world.stranger()).rotateAuditKey({ params: { key_id: 'x' } }))).toEqual([403, 'policy_denied']);
  addAuditKey(world.stores.dataDir);
  const { items } = await keys();
  expect(items.map(({ status }) => status)).toEqual(['next', 'current']);
  expect(await refusal(rotate('0'.repeat(32)))).toEqual([409, 'audit_key_next_missing']);
  // 2 It is brought into force, and the trail says who did it.
  const next = items[0]?.key_id as string;
  expect((await rotate(next)).items.map(({ key_id, status }) => [key_id, status])).toEqual([
    [next, 'current'],
    [first?.key_id, 'retired'],
  ]);
  const { items: audits } = await world.host.by(world.admin()).listAudit({ query: { action: 'audit.key_rotated' } });
  expect(audits).toMatchObject([{ resource: { type: 'audit_key', id: next }, details: { before: first?.key_id } }]);
  // 3 What was signed before verifies under the key of its time; the head alone is signed again.
  expect(await trail.verify()).toMatchObject({ status: 'intact', anchors: 2 });
  await trail.signed();
  expect(await signersOf(trail)).toEqual([first?.key_id, next]);
  expect(await trail.verify()).toMatchObject({ status: 'intact', anchors: 2, key_id: next });
});

test('REG-004 G-SYS-13 a cut is confirmed by the key in force, where nothing else is left of a chain, too', async () => {
  const trail = new Trail(world);
  await trail.record(1);
  await trail.signed();
  // The clock of the trail never goes back: what is old is old by the day of its anchor.
  await trail.tamper(sql => sql`update audit_anchors set day = day - 401 where env_id = ${trail.envId}`);
  await world.host.clock.leap('61m');
  expect(await trail.verify()).toMatchObject({ status: 'intact', rows: 0, position: 1, cut: { position: 1 } });
  const next = await rotated();
  await trail.signed();
  expect(await world.sql<object[]>`select key_id from audit_cuts where env_id = ${trail.envId}`).toMatchObject([{ key_id: next }]);
  await world.host.clock.leap('61m');
  expect(await trail.verify()).toMatchObject({ status: 'intact', cut: { position: 1 } });
});

test('REG-004 a thief of a retired key signs nothing anew: neither at its own time nor where nobody has confirmed it', async () => {
  const [late, old] = [new Trail(world), new Trail(world)];
  await late.record(2);
  await old.record(2);
  await late.signed();
  const [before] = await signersOf(late);
  await rotated();
  await late.signed();
  // 1 The signature of the retired key over this very head would be right; its time is over.
  await late.tamper(sql => sql`update audit_anchors set key_id = ${before} where env_id = ${late.envId}`);
  expect(await late.verify()).toMatchObject({ status: 'broken', fault: { kind: 'signature_invalid', position: 2 } });
  // 2 What it signed in its time, put back over the confirmation, lacks one.
  const putBack = await old.backup();
  await rotated();
  await old.signed();
  expect(await old.verify()).toMatchObject({ status: 'intact' });
  await putBack();
  await world.host.clock.leap('61m');
  expect(await old.verify()).toMatchObject({ status: 'broken', fault: { kind: 'signature_unconfirmed', position: 2 } });
});

test('REG-004 another process finds the key in force, with the retired seed destroyed; with a seed of nobody it does not start', async () => {
  const trail = new Trail(world);
  await trail.record(1);
  await rotated();
  await trail.signed();
  const file = join(world.stores.dataDir, 'audit.key');
  const last = readFileSync(file, 'utf8').trim().split('\n').at(-1) as string;
  const another = (seed: string) => {
    writeFileSync(file, seed);
    return boot(plugin, {
      stores: world.stores,
      stubs: { identity: world.directory.identity },
      elsewhere: ['post'],
      environment: World.environment(world.stores.dataDir),
    });
  };
  {
    await using other = await another(last);
    expect(await other.by(world.admin()).verifyAudit({ query: { env_id: trail.envId } })).toMatchObject({
      status: 'intact',
      position: 1,
      anchors: 1,
    });
  }
  await expect(another(randomBytes(32).toString('base64'))).rejects.toMatchObject({ cause: { code: 'audit_key_unusable' } });
  writeFileSync(file, last);
});

test('REG-004 with a key in the table that nobody introduced nothing is recorded and no key comes into force, until the table is put right', async () => {
  const [first] = (await keys()).items;
  await world.sql`insert into audit_keys (seq, key_id, public_key, since, by_previous, by_itself)
    select seq + 1, 'stranger', public_key, now(), by_previous, by_itself from audit_keys order by seq desc limit 1`;
  expect(await refusal(rotate('0'.repeat(32)))).toEqual([503, 'audit_key_unusable']);
  await world.statement(`alter table audit_keys disable trigger user; delete from audit_keys where key_id = 'stranger';
    alter table audit_keys enable trigger user`);
  expect((await keys()).items[0]?.key_id).toBe(first?.key_id);
});

test('REG-004 a rotation that finds another list of keys than it began with changes nothing, and says to ask again', async () => {
  addAuditKey(world.stores.dataDir);
  const next = (await keys()).items[0]?.key_id as string;
  let outcome: Promise<[number, string]> | undefined;
  await world.tx(async sql => {
    await sql`select pg_advisory_xact_lock(hashtextextended('platform:sys:audit:keys', 0))`;
    outcome = refusal(rotate(next));
    const waiting = () => sql<object[]>`select 1 from pg_locks where locktype = 'advisory' and not granted`;
    await expect.poll(async () => (await waiting()).length, { timeout: 20_000, interval: 10 }).toBe(1);
    // Another process rotates in this moment.
    await sql`insert into audit_keys (seq, key_id, public_key, since, by_previous, by_itself)
      select seq + 1, 'stranger', public_key, now(), by_previous, by_itself from audit_keys order by seq desc limit 1`;
  });
  expect(await outcome).toEqual([503, 'audit_key_rotating']);
  await world.statement(`alter table audit_keys disable trigger user; delete from audit_keys where key_id = 'stranger';
    alter table audit_keys enable trigger user`);
  expect((await rotate(next)).items[0]).toMatchObject({ key_id: next, status: 'current' });
});

test('REG-004 keys that did not introduce each other are no succession, whoever wrote them', async () => {
  const made = () =>
    generateKeyPairSync('ml-dsa-65', {
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    });
  const [a, b, eve] = [made(), made(), made()];
  const by = (pem: string, text: Buffer) => sign(null, text, createPrivateKey(pem)).toString('hex');
  const entry = (key: typeof a, before: readonly KeyEntry[], previous?: typeof a): KeyEntry => {
    const bare = { seq: before.length + 1, key_id: keyIdOf(key.publicKey), public_key: key.publicKey, since: before.length * 1_000 };
    const text = introduction(bare, before);
    return { ...bare, by_previous: previous ? by(previous.privateKey, text) : null, by_itself: by(key.privateKey, text) };
  };
  const first = entry(a, []);
  const second = entry(b, [first], a);
  expect(succession([first, second])?.map(({ since, until }) => [since, until])).toEqual([
    [0, 1_000],
    [1_000, Number.POSITIVE_INFINITY],
  ]);
  const others: readonly (readonly KeyEntry[])[] = [
    // A past of another's making before the key that is known: the known key never named it.
    [entry(eve, []), second],
    [entry(eve, []), { ...second, by_previous: entry(b, [entry(eve, [])], eve).by_previous }],
    // A future of another's making.
    [first, entry(eve, [first])],
    [first, entry(eve, [first], eve)],
    // A key under the name of another, and one left out.
    [first, { ...second, key_id: first.key_id }],
    [second],
    [first, { ...second, since: 0 }],
    [{ ...first, public_key: 'no key' }, second],
  ];
  for (const entries of others) expect(succession(entries)).toBeUndefined();
});
