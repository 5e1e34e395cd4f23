import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { SMTPServer } from 'smtp-server';
import { systemClock } from '@platform/kernel/base/clock';
import type { CrashInput } from '../../../plugins/notification/test/fixtures/crash-child.ts';
import { RelayServer } from '../../../plugins/notification/test/fixtures/relay-server.ts';
import { keyIn, World } from '../../../plugins/notification/test/fixtures/world.ts';
import { mailCost } from '../notification/mail-cost.ts';
import { quantile, type Row } from '../row.ts';

const MESSAGES = Number(process.env['PLATFORM_BENCH_MESSAGES'] ?? 20_000);
const ENVIRONMENTS = 10;
const AT_ONCE = 16;
const PACE = { perSecond: 200, seconds: 15 };
const BESIDE = 500;
/** How long the provider hangs. */
const HANG_S = Number(process.env['PLATFORM_BENCH_HANG_S'] ?? 15);
const MOST_MS = 240_000 + MESSAGES * 10;
const CHILD = fileURLToPath(new URL('../../../plugins/notification/test/fixtures/crash-child.ts', import.meta.url));
const MiB = 2 ** 20;

/** Takes every mail and remembers who got it under which Message-ID. */
class Sink implements AsyncDisposable {
  readonly ids = new Map<string, Set<string>>();
  taken = 0;
  readonly server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    disabledCommands: ['STARTTLS'],
    closeTimeout: 50,
    onData: (stream, session, done) => {
      const parts: Buffer[] = [];
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.on('end', () => {
        const id = /^Message-ID: (\S+)/im.exec(Buffer.concat(parts).toString('latin1'))?.[1] ?? '';
        for (const { address } of session.envelope.rcptTo) this.ids.set(address, (this.ids.get(address) ?? new Set()).add(id));
        this.taken += 1;
        done();
      });
    },
  });

  static async open(): Promise<Sink & { readonly port: number }> {
    const sink = new Sink();
    sink.server.on('error', () => undefined);
    await new Promise<void>(resolve => sink.server.listen(0, '127.0.0.1', resolve));
    return Object.assign(sink, { port: (sink.server.server.address() as { port: number }).port });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise(resolve => this.server.close(() => resolve()));
  }
}

/** What issue 19 asks of notification: nothing lost or doubled over a kill, the way to the inbox, a provider that hangs. */
export async function* notificationRows(): AsyncGenerator<Row> {
  await using world = await World.start();
  await using sink = await Sink.open();
  // The kit's clock moves when it is told: here it is told the time.
  using _time = systemClock.every(100, () => world.host.clock.advance('100ms'));
  yield* killed(world, sink);
  yield await toInbox(world);
  yield await mailCost(world);
  yield* beside(world);
}

/** Two processes share the work, and one of them is killed in the middle of it. */
async function* killed(world: World, sink: Sink & { readonly port: number }): AsyncGenerator<Row> {
  const envs = Array.from({ length: ENVIRONMENTS }, () => world.env());
  for (const env of envs) await world.gateway(env, { gateway_url: `smtp://127.0.0.1:${sink.port}`, config: { from: 'bench@example.com' } });
  const child = await another(world);
  const began = performance.now();
  let next = 0;
  const sending = Array.from({ length: AT_ONCE }, async (_, worker) => {
    for (let n = next++; n < MESSAGES; n = next++) {
      const recipient = { user_id: `reader${n % 997}`, email: `reader${n}@example.org` };
      await world.send(
        { env_id: envs[n % ENVIRONMENTS] as string, recipient, channels: ['email'], idempotency_key: `bench ${n}` },
        producer(world, worker),
      );
    }
  });
  while (sink.taken < MESSAGES / 4) await delay(50);
  child.kill('SIGKILL');
  await Promise.all([...sending, once(child, 'exit')]);
  const ended = performance.now() + MOST_MS;
  const count = async () => {
    const [row] = await world.sql<{ mails: number; views: number; doubled: number }[]>`
      select (select count(*)::int from deliveries where channel = 'email' and state = 'delivered') as mails,
        (select count(distinct notification_id)::int from deliveries where channel = 'view' and state = 'delivered') as views,
        (select count(*)::int from (select 1 from outbox where event_type = 'platform:notification:received'
          group by payload ->> 'notification_id' having count(*) > 1) twice) as doubled`;
    return row as { mails: number; views: number; doubled: number };
  };
  let found = await count();
  for (; found.mails < MESSAGES && performance.now() < ended; found = await count()) await delay(500);
  const seconds = (performance.now() - began) / 1_000;
  const several = [...sink.ids.values()].filter(({ size }) => size !== 1).length;
  yield {
    name: `${MESSAGES} messages through a kill of one of two processes: lost on the way to the inbox`,
    value: MESSAGES - found.views,
    unit: 'messages',
    limit: 0,
  };
  yield { name: 'the same, doubled in the inbox', value: found.doubled, unit: 'messages', limit: 0 };
  yield {
    name: 'the same, mails lost',
    value: MESSAGES - sink.ids.size,
    unit: 'mails',
    limit: 0,
    note: `${sink.taken - sink.ids.size} came twice`,
  };
  yield { name: 'the same, mails under more than one Message-ID', value: several, unit: 'mails', limit: 0 };
  yield {
    name: 'the same, from the first send to the last mail',
    value: MESSAGES / seconds,
    unit: 'messages/s',
    note: `${seconds.toFixed(0)} s; producer, sink and database on the same cores, and 30 s of lease for what the killed one held`,
  };
}

/** From the commit of a message to its event with the bus. */
async function toInbox(world: World): Promise<Row> {
  const env_id = world.env();
  const [at, times] = [new Map<string, number>(), [] as number[]];
  const early = new Map<string, number>();
  const kept = world.host.bus.push.bind(world.host.bus);
  world.host.bus.push = (...events) => {
    for (const { event_type, payload } of events)
      if (event_type === 'platform:notification:received') arrived(String(payload['notification_id']));
    return kept(...events);
  };
  const arrived = (id: string) => {
    const committed = at.get(id);
    if (committed === undefined) early.set(id, performance.now());
    else times.push(performance.now() - committed);
  };
  const total = PACE.perSecond * PACE.seconds;
  const from = performance.now();
  const sends: Promise<void>[] = [];
  for (let n = 0; n < total; n++) {
    const due = from + (n * 1_000) / PACE.perSecond;
    const wait = due - performance.now();
    if (wait > 0) await delay(wait);
    sends.push(
      world.send({ env_id, recipient: { user_id: `reader${n % 50}` } }, producer(world, n % 8)).then(id => {
        at.set(id, performance.now());
        // Its event was faster than the answer to its sender.
        if (early.has(id)) times.push(0);
      }),
    );
  }
  await Promise.all(sends);
  const ended = performance.now() + 20_000;
  while (times.length < total && performance.now() < ended) await delay(20);
  return {
    name: 'commit of a message → its event with the bus, 200/s, p99',
    value: quantile(times, 0.99),
    unit: 'ms',
    limit: 100,
    note: `${times.length} of ${total}, median ${quantile(times, 0.5).toFixed(0)} ms`,
  };
}

/** A provider that takes the connection and never answers, with as many mails for it as texts beside it. */
async function* beside(world: World): AsyncGenerator<Row> {
  await using hanging = await RelayServer.open();
  hanging.answer = () => undefined;
  const env_id = world.env();
  await world.gateway(env_id, { gateway_url: hanging.url, config: { from: 'bench@example.com' } });
  await world.gateway(env_id, { channel: 'sms', name: 'texts' });
  const before = process.memoryUsage().rss / MiB;
  const began = performance.now();
  for (let n = 0; n < BESIDE; n++)
    await world.send(
      { env_id, recipient: { user_id: `r${n % 50}`, email: `hung${n}@example.org`, phone: '1' }, channels: ['email', 'sms'] },
      producer(world, n % 8),
    );
  const texts = async () =>
    (
      await world.sql<
        { n: number }[]
      >`select count(*)::int as n from deliveries where env_id = ${env_id} and channel = 'sms' and state = 'delivered'`
    )[0]?.n as number;
  while ((await texts()) < BESIDE && performance.now() - began < 60_000) await delay(50);
  const seconds = (performance.now() - began) / 1_000;
  yield {
    name: `${BESIDE} texts beside as many mails for a provider that hangs: not delivered`,
    value: BESIDE - (await texts()),
    unit: 'texts',
    limit: 0,
    note: `${seconds.toFixed(1)} s, sends included`,
  };
  const held: number[] = [];
  for (let second = 0; second < HANG_S; second++) {
    await delay(1_000);
    held.push(process.memoryUsage().rss / MiB - before);
  }
  yield {
    name: `the same, memory that the process grew by while the provider hung for ${HANG_S} s`,
    value: Math.max(0, held.at(-1) ?? 0),
    unit: 'MB',
    note: `at a fifth of the time ${Math.max(0, held[Math.floor(HANG_S / 5)] ?? 0).toFixed(
      0,
    )} MB, at most ${Math.max(...held).toFixed(0)} MB`,
  };
}

/** Each may send two hundred a second. */
const producer = (world: World, n: number) => world.producer(`bench${n}-post`);

async function another(world: World): Promise<ChildProcess> {
  const { dataDir, stores } = world.stores;
  const input: CrashInput = { dataDir, database: stores.database, keyValueUrl: stores.keyValueUrl, environment: keyIn(dataDir) };
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', CHILD, JSON.stringify(input)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return child;
}
