import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { as, eventually, newId } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CURVE_S } from '../src/delivery/dispatcher.ts';
import { MailServer } from './fixtures/mail-server.ts';
import { RelayServer } from './fixtures/relay-server.ts';
import { World } from './fixtures/world.ts';

let world: World;
let mail: MailServer;
let relay: RelayServer;
beforeAll(async () => {
  [world, mail, relay] = await Promise.all([World.start(), MailServer.open(), RelayServer.open()]);
});
afterAll(async () => {
  await Promise.all([mail[Symbol.asyncDispose](), relay[Symbol.asyncDispose]()]);
  await world[Symbol.asyncDispose]();
});

let people = 0;
const somebody = () => `person${++people}@example.org`;
const smtp = (envId: string, more = {}) =>
  world.gateway(envId, { gateway_url: `smtp://127.0.0.1:${mail.port}`, config: { from: 'Shop <shop@example.com>' }, ...more });
const viaRelay = (envId: string, more = {}) =>
  world.gateway(envId, { gateway_url: relay.url, config: { from: 'shop@example.com' }, ...more });
const mailTo = (env_id: string, email: string, more = {}) =>
  world.send({ env_id, recipient: { user_id: 'somebody', email }, channels: ['email'], ...more });
/** What a listing has on all of its pages. */
async function pagesOf<Item>(read: (cursor: { cursor?: string }) => Promise<{ items: readonly Item[]; next_cursor: string | null }>) {
  const items: Item[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await read(cursor ? { cursor } : {});
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  return items;
}
const dead = async (envId: string) => (await world.host.by(world.admin(envId)).listDeadLetters({ targetEnvId: envId })).items;

describe('e-mail by SMTP', () => {
  test('leaves by the gateway of its environment, as text and HTML, to exactly one address', async () => {
    const env_id = world.env();
    await smtp(env_id);
    const [to, correlation_id] = [somebody(), `c-${newId()}`];
    const id = await mailTo(env_id, to, {
      subject: 'Räksmörgås\n& more',
      body: 'Look:\nhttps://shop.example/a?b=1&c=2\n<b>bold</b>',
      correlation_id,
    });
    const delivery = await world.reaches(id, 'delivered');
    const [got] = mail.to(to);
    expect(got?.envelope).toEqual({ from: 'shop@example.com', to: [to] });
    expect(got?.mail.subject).toBe('Räksmörgås & more');
    expect(got?.mail.from?.value).toEqual([{ name: 'Shop', address: 'shop@example.com' }]);
    expect(got?.mail.messageId).toBe(`<${delivery.delivery_id}@post.localhost>`);
    expect(got?.mail.text).toContain('https://shop.example/a?b=1&c=2');
    expect(got?.mail.html).toContain('href="https://shop.example/a?b=1&amp;c=2"');
    expect(got?.mail.html).toContain('&lt;b&gt;bold&lt;/b&gt;');
    expect(got?.mail.headers.get('x-platform-correlation-id')).toBe(correlation_id);
    expect(got?.mail.headers.has('list-unsubscribe')).toBe(false);
  });

  test('NTF-036 NTF-043 NTF-044 C1 is tried again after 1 s, 5 s and 30 s, then lies with the dead letters with the words of every try, under one Message-ID', async () => {
    const env_id = world.env();
    await smtp(env_id);
    const to = somebody();
    mail.refusals.set(to, { code: 451, words: '4.7.1 greylisted' });
    const id = await mailTo(env_id, to);
    let [tries, waits] = [1, [] as number[]];
    for (const pause of ['1s', '5s', '30s']) {
      const { state, retries_used, next_attempt_at } = await world.tried(id, tries);
      expect([state, retries_used]).toEqual(['pending', tries]);
      waits.push(Date.parse(next_attempt_at as string) - world.host.clock.now().getTime());
      await world.host.clock.advance(pause);
      tries += 1;
    }
    expect(waits).toEqual([1_000, 5_000, 30_000]);
    // The two steps behind them are for who sets more retries (C1).
    expect(CURVE_S).toEqual([1, 5, 30, 120, 600]);
    const { attempts, history } = await world.reaches(id, 'dead_lettered');
    expect([attempts, history.length]).toEqual([4, 4]);
    const [letter] = await dead(env_id);
    expect(letter).toMatchObject({
      notification_id: id,
      channel: 'email',
      attempts: 4,
      error: expect.stringContaining('4.7.1 greylisted'),
    });
    expect(letter?.history).toHaveLength(4);
    const told = await world.host.events('platform:post:deadletter:added');
    expect(told.some(({ payload }) => payload['notification_id'] === id)).toBe(true);
    // NTF-029: the inbox has had it all along.
    expect((await world.delivery(id, 'view'))?.state).toBe('delivered');
    mail.refusals.delete(to);
  });

  test('NTF-041 NTF-045 NTF-046 a replay takes the record away and tries anew; the inbox hears of it once; an unknown one is 404', async () => {
    const env_id = world.env();
    const admin = world.host.by(world.admin(env_id));
    const gateway = await world.gateway(env_id, { config: { simulate_failure: { mode: 'first_n', n: 4, error: 'not now' } } });
    const id = await mailTo(env_id, somebody());
    for (const pause of ['1s', '5s', '30s']) {
      const tries = ['1s', '5s', '30s'].indexOf(pause) + 1;
      await world.tried(id, tries);
      await world.host.clock.advance(pause);
    }
    await world.reaches(id, 'dead_lettered');
    const [letter] = await dead(env_id);
    const at = { targetEnvId: env_id, params: { dead_letter_id: letter?.dead_letter_id as string } };
    const delivered = async () =>
      (await world.sql<{ at: string }[]>`select delivered_at::text as at from messages where notification_id = ${id}`)[0]?.at;
    const before = await delivered();
    expect(await admin.replayDeadLetter(at)).toEqual({ notification_id: id, delivery_id: letter?.delivery_id, status: 'pending' });
    await expect(admin.replayDeadLetter(at)).rejects.toMatchObject({ status: 404, code: 'dead_letter_not_found' });
    await world.reaches(id, 'delivered');
    // The relay had its row once more.
    await eventually(delivered).not.toBe(before);
    await world.shown(id);
    expect(await dead(env_id)).toEqual([]);
    expect(
      world.host.bus.filter(
        ({ event_type, payload }) => event_type === 'platform:notification:received' && payload['notification_id'] === id,
      ),
    ).toHaveLength(1);
    const elsewhere = world.env();
    await expect(world.host.by(world.admin(elsewhere)).replayDeadLetter({ ...at, targetEnvId: elsewhere })).rejects.toMatchObject({
      status: 404,
    });
    expect((await admin.getGateway({ targetEnvId: env_id, params: { gateway_id: gateway.gateway_id } })).config.simulate_failure).toEqual({
      mode: 'first_n',
      n: 4,
      error: 'not now',
    });
  });

  test('NTF-050 all dead letters of a channel are replayed at once', async () => {
    const env_id = world.env();
    const admin = world.host.by(world.admin(env_id));
    // Nobody can be reached: no address for the channel.
    for (const channel of ['sms', 'sms', 'mail'] as const)
      await world.reaches(await world.send({ env_id, channels: [channel], recipient: { user_id: 'u' } }), 'dead_lettered', channel);
    const letters = (await dead(env_id)).map(({ dead_letter_id }) => dead_letter_id);
    expect(letters.length).toBe(3);
    const sorted = (order: 'asc' | 'desc') =>
      pagesOf(cursor => admin.listDeadLetters({ targetEnvId: env_id, query: { sort: 'failed_at', order, limit: 2, ...cursor } }));
    const ids = async (order: 'asc' | 'desc') => (await sorted(order)).map(({ dead_letter_id }) => dead_letter_id);
    expect([await ids('asc'), await ids('desc')]).toEqual([letters.toReversed(), letters]);
    expect((await admin.listDeadLetters({ targetEnvId: env_id, query: { channel: 'mail' } })).items.length).toBe(1);
    expect(await admin.replayMatching({ targetEnvId: env_id, body: { channel: 'sms' } })).toEqual({ replayed: 2, more: false });
  });

  test('an address that is refused for good is a dead letter at once, is suppressed, and gets mail again after an undo', async () => {
    const env_id = world.env();
    const admin = world.host.by(world.admin(env_id));
    await smtp(env_id);
    const to = somebody();
    mail.refusals.set(to, { code: 550, words: '5.1.1 no such user' });
    expect((await world.reaches(await mailTo(env_id, to), 'dead_lettered')).attempts).toBe(1);
    mail.refusals.delete(to);
    expect((await world.reaches(await mailTo(env_id, to), 'suppressed')).why).toContain('5.1.1 no such user');
    const [kept] = (await admin.listSuppressions({ targetEnvId: env_id })).items;
    expect(kept).toMatchObject({ address: to, channel: 'email', reason: expect.stringContaining('5.1.1 no such user') });
    await admin.deleteSuppression({ targetEnvId: env_id, params: { suppression_id: kept?.suppression_id as string } });
    await world.reaches(await mailTo(env_id, to), 'delivered');
    expect(mail.to(to)).toHaveLength(1);
    // A refusal by policy says nothing of the address.
    const blocked = somebody();
    mail.refusals.set(blocked, { code: 550, words: '5.7.1 blocked by policy' });
    expect((await world.tried(await mailTo(env_id, blocked), 1)).state).toBe('pending');
    mail.refusals.delete(blocked);
  });

  test('an administrator stops mail to an address, and the log says of each channel what it did', async () => {
    const env_id = world.env();
    const admin = world.host.by(world.admin(env_id));
    await smtp(env_id);
    const to = somebody();
    const stopped = await admin.addSuppression({ targetEnvId: env_id, body: { address: to, reason: 'asked us to' } });
    expect(stopped).toMatchObject({ address: to, channel: 'email', reason: 'asked us to' });
    const id = await mailTo(env_id, to);
    await world.reaches(id, 'suppressed');
    const log = { targetEnvId: env_id, params: { notification_id: id } };
    const { items } = await admin.messageDeliveries(log);
    expect(items).toEqual((await admin.explainMessage(log)).channels);
    const email = { channel: 'email', state: 'suppressed', why: expect.stringContaining('asked us to') };
    expect(items.find(({ channel }) => channel === 'email')).toMatchObject(email);
    const other = world.env();
    await expect(world.host.by(world.admin(other)).messageDeliveries({ ...log, targetEnvId: other })).rejects.toMatchObject({
      status: 404,
      code: 'message_not_found',
    });
    await expect(admin.addSuppression({ targetEnvId: env_id, body: { address: 'nobody' } })).rejects.toMatchObject({
      status: 400,
      code: 'recipient_invalid',
    });
  });

  test('a mail that comes back later suppresses its address', async () => {
    const env_id = world.env();
    await smtp(env_id);
    const to = somebody();
    const { delivery_id } = await world.reaches(await mailTo(env_id, to), 'delivered');
    const relayed = world.host.by(as.machine('bounce', 'post:bounces:write'));
    const message_id = `<${delivery_id}@post.localhost>`;
    expect(await relayed.reportBounce({ body: { message_id, kind: 'transient', reason: 'full' } })).toEqual({ suppressed: false });
    expect(await relayed.reportBounce({ body: { message_id, kind: 'permanent', reason: 'gone' } })).toEqual({ suppressed: true });
    expect((await world.reaches(await mailTo(env_id, to), 'suppressed')).why).toContain('gone');
    await expect(relayed.reportBounce({ body: { message_id: `<${newId()}@x>`, kind: 'permanent' } })).rejects.toMatchObject({
      status: 404,
    });
  });
});

describe('e-mail by an HTTP relay', () => {
  test('NTF-016 NTF-018 NTF-019 NTF-021 posts the documented body with the secret as bearer, which is in no row and no log', async () => {
    const env_id = world.env();
    const secret_ref = world.secret('key-of-yesterday');
    await viaRelay(env_id, { credentials: { secret_ref } });
    // What counts is what stands there when a message goes out.
    writeFileSync(fileURLToPath(secret_ref), 'key-of-the-relay\n');
    const to = somebody();
    const { delivery_id } = await world.reaches(await mailTo(env_id, to), 'delivered');
    const posted = relay.posted.find(({ body }) => body['to'] === to);
    expect(posted?.headers).toMatchObject({ authorization: 'Bearer key-of-the-relay', 'content-type': 'application/json' });
    expect(posted?.body).toEqual({
      from: 'shop@example.com',
      to,
      subject: 'Hello',
      text: 'It happened.',
      html: expect.stringContaining('It happened.'),
      headers: expect.objectContaining({ 'Auto-Submitted': 'auto-generated' }),
      message_id: `<${delivery_id}@post.localhost>`,
    });
    const tables = JSON.stringify([
      await world.sql`select * from gateways`,
      await world.sql`select * from deliveries`,
      await world.sql`select * from work_tasks`,
      await world.sql`select * from outbox`,
    ]);
    expect(tables).not.toContain('key-of-the-relay');
    world.host.process.telemetry.flush();
    expect(readFileSync(join(world.stores.dataDir, 'logs', 'test-post.log'), 'utf8')).not.toContain('key-of-the-relay');
  });

  test('NTF-020 credentials that cannot be resolved do not keep the message from being tried', async () => {
    const env_id = world.env();
    await viaRelay(env_id, { credentials: { secret_ref: 'file:///nowhere/at/all' } });
    const to = somebody();
    await world.reaches(await mailTo(env_id, to), 'delivered');
    expect(relay.posted.find(({ body }) => body['to'] === to)?.headers.authorization).toBeUndefined();
  });

  test('a redirect and a refusal are no delivery, and their words are kept', async () => {
    const env_id = world.env();
    await viaRelay(env_id);
    relay.answer = response => response.writeHead(302, { location: relay.url }).end();
    const before = relay.posted.length;
    expect((await world.tried(await mailTo(env_id, somebody()), 1)).last_error).toBe('the relay answered 302');
    expect(relay.posted.length).toBe(before + 1);
    relay.answer = response => response.writeHead(500).end('quota\nexceeded');
    expect((await world.tried(await mailTo(env_id, somebody()), 1)).last_error).toBe('the relay answered 500: quota exceeded');
    relay.answer = response => response.writeHead(202).end();
  });
});

describe('the inbox', () => {
  test('NTF-003 NTF-004 NTF-008 NTF-023 comes first and has the truth: while a message cannot be put into it nothing leaves, and then it is rendered as of now', async () => {
    const env_id = world.env();
    const [user, to] = [as.userIn(env_id, 'post:read'), somebody()];
    const listed = async () => (await world.host.by(user).listMessages()).items.map(({ title }) => title);
    await viaRelay(env_id);
    await world.sql`alter table deliveries add constraint no_view check (channel <> 'view') not valid`;
    const id = await mailTo(env_id, to, { recipient: { user_id: user.id, email: to }, template: { key: 'shop.paid', vars: { n: 7 } } });
    const failed = async () =>
      (await world.sql<{ n: number }[]>`select failed_passes as n from messages where notification_id = ${id}`)[0]?.n;
    try {
      await eventually(failed).toBeGreaterThanOrEqual(1);
      expect([await listed(), relay.posted.filter(({ body }) => body['to'] === to)]).toEqual([[], []]);
    } finally {
      await world.sql`alter table deliveries drop constraint no_view`;
    }
    const words = { locale: 'en', subject: 'Paid {{n}}', body: 'Thank you.' };
    await world.host.by(world.admin(env_id)).putTemplate({ targetEnvId: env_id, params: { key: 'shop.paid' }, body: words });
    relay.answer = response => response.writeHead(500).end();
    await world.host.clock.advance('5s');
    await eventually(async () => (await world.delivery(id))?.attempts).toBeGreaterThanOrEqual(1);
    // Whatever becomes of the mail, the message is there.
    expect([await listed(), relay.posted.find(({ body }) => body['to'] === to)?.body['subject']]).toEqual([['Paid 7'], 'Paid 7']);
    relay.answer = response => response.writeHead(202).end();
    await eventually(async () => (await world.host.clock.advance('1s'), (await world.delivery(id))?.state)).toBe('delivered');
  });
});
