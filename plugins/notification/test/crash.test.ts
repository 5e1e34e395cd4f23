import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import type { CrashInput } from './fixtures/crash-child.ts';
import { MailServer } from './fixtures/mail-server.ts';
import { keyIn, World } from './fixtures/world.ts';

const CHILD = fileURLToPath(new URL('./fixtures/crash-child.ts', import.meta.url));
const MESSAGES = 200;
const KILLS = 3;
let world: World;
let mail: MailServer;
const children = new Set<ChildProcess>();
beforeAll(async () => {
  [world, mail] = await Promise.all([World.start(), MailServer.open()]);
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await world[Symbol.asyncDispose]();
  await mail[Symbol.asyncDispose]();
});

/** Another process of the service, which takes part in the work until it is killed. */
async function victim(): Promise<ChildProcess> {
  const { dataDir, stores } = world.stores;
  const input: CrashInput = { dataDir, database: stores.database, keyValueUrl: stores.keyValueUrl, environment: keyIn(dataDir) };
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', CHILD, JSON.stringify(input)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.add(child);
  await once(child.stdout, 'data');
  return child;
}

test('NTF-008 processes that are killed in the middle of the work lose nothing and double nothing in the inbox; mail goes out at least once under one Message-ID', {
  timeout: 180_000,
}, async () => {
  const env_id = world.env();
  await world.gateway(env_id, { gateway_url: `smtp://127.0.0.1:${mail.port}`, config: { from: 'shop@example.com' } });
  const sent: { id: string; to: string }[] = [];
  const sentBy = async (from: number, count: number) => {
    for (let n = from; n < from + count; n++) {
      const to = `crash${n}@example.org`;
      sent.push({
        to,
        id: await world.send(
          { env_id, recipient: { user_id: `reader${n % 7}`, email: to }, channels: ['email'], idempotency_key: `crash ${n}` },
          world.producer(`crash${n % 3}-post`),
        ),
      });
    }
  };
  const share = MESSAGES / (KILLS + 1);
  for (let kill = 0; kill < KILLS; kill++) {
    const child = await victim();
    const before = mail.received.length;
    const work = sentBy(kill * share, share);
    await eventually(() => mail.received.length).toBeGreaterThan(before + 5);
    child.kill('SIGKILL');
    await Promise.all([work, once(child, 'exit')]);
  }
  await sentBy(KILLS * share, share);
  const delivered = async () =>
    (
      await world.sql<
        { n: number }[]
      >`select count(*)::int as n from deliveries where env_id = ${env_id} and channel = 'email' and state = 'delivered'`
    )[0]?.n;
  // What a dead process had in its hands comes back when its lease has ended.
  await eventually(async () => {
    await world.host.clock.advance('5s');
    return delivered();
  }).toBe(MESSAGES);
  const views = await world.sql<
    { n: number; ids: number }[]
  >`select count(*)::int as n, count(distinct notification_id)::int as ids from deliveries where env_id = ${env_id} and channel = 'view'
    and state = 'delivered'`;
  const told = await world.sql<{ n: number; ids: number }[]>`
    select count(*)::int as n, count(distinct payload->>'notification_id')::int as ids from outbox where env_id = ${env_id}
      and event_type = 'platform:notification:received'`;
  expect([[...views], [...told]]).toEqual([[{ n: MESSAGES, ids: MESSAGES }], [{ n: MESSAGES, ids: MESSAGES }]]);
  const ids = new Map<string, Set<string>>();
  for (const { envelope, mail: got } of mail.received)
    for (const to of envelope.to) ids.set(to, (ids.get(to) ?? new Set()).add(String(got.messageId)));
  expect([ids.size, [...ids.values()].filter(({ size }) => size !== 1)]).toEqual([MESSAGES, []]);
  expect(mail.received.length).toBeLessThan(MESSAGES * 1.2);
});
