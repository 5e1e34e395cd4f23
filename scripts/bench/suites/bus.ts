import type { Row, Size } from '../row.ts';
import { BusRig } from '../bus/bus-rig.ts';
import { latencyRows } from '../bus/latencies.ts';
import { peerFigures, type PeerName } from '../bus/peers.ts';
import type { PeerFigures } from '../bus/peers/figures.ts';
import { batches, consumed, type Produced, singles } from '../bus/throughput.ts';

type Beside = (name: PeerName, figure: keyof PeerFigures) => Pick<Row, 'peer'>;
interface Run {
  readonly rig: BusRig;
  readonly size: Size;
  readonly beside: Beside;
}

const MiB = 2 ** 20;
const BESIDE_SINGLES: readonly (readonly [string, PeerName])[] = [
  ['RabbitMQ', 'RabbitMQ quorum queue, confirms'],
  ['pg-boss', 'pg-boss'],
  ['graphile-worker', 'graphile-worker'],
];

/** The event bus beside what its users could have taken instead, on the same disk in the same run. */
export async function* busRows(size: Size): AsyncGenerator<Row> {
  const peers = size === 'long' ? await peerFigures() : {};
  await using rig = await BusRig.start();
  const beside: Beside = (name, figure) => {
    const value = peers[name]?.[figure];
    return value === undefined ? {} : { peer: { name, value } };
  };
  const run = { rig, size, beside };
  yield* singleRows(run);
  yield* batchRows(run);
  const pulled = await consumed(rig, size, 4);
  yield {
    name: 'pull and acknowledge over HTTP, batches of 100, four workers',
    value: pulled.perSecond,
    unit: 'events/s',
    atLeast: 30_000,
    note: `${pulled.events.toLocaleString('en')} events`,
  };
  const { rss } = await rig.bus.usage();
  yield { name: 'resident memory of the bus process after that', value: rss / MiB, unit: 'MB', limit: 200 };
  yield* await latencyRows(rig);
  // Not before: what so many at once leave in memory is no part of the rates that are asked for.
  yield* manyInFlightRows(run);
}

/** A row that is only there to stand beside somebody. */
const next = (row: Row): Row[] => (row.peer ? [row] : []);
const called = ({ p99Ms }: Produced) => `p99 of a call ${p99Ms.toFixed(1)} ms`;

async function* singleRows({ rig, size, beside }: Run): AsyncGenerator<Row> {
  const single = await singles(rig, size, 64);
  yield {
    name: 'single produce, mutual TLS, token and policy checked, durable, 64 at once',
    value: single.perSecond,
    unit: '/s',
    atLeast: 8_000,
    ...beside('NATS JetStream, sync_interval always', 'inFlight'),
  };
  yield { name: 'the same, p99', value: single.p99Ms, unit: 'ms', limit: 30 };
  for (const [name, peer] of BESIDE_SINGLES)
    yield* next({ name: `the same beside ${name}`, value: single.perSecond, unit: '/s', ...beside(peer, 'inFlight') });
}

async function* batchRows({ rig, size, beside }: Run): AsyncGenerator<Row> {
  const one = await batches(rig, size, 1);
  yield {
    name: 'batches of 100, durable, one producer connection, a call at a time',
    value: one.perSecond,
    unit: 'events/s',
    note: called(one),
  };
  const oneAhead = await batches(rig, size, 1, 4);
  yield {
    name: 'the same, four calls under way on it',
    value: oneAhead.perSecond,
    unit: 'events/s',
    atLeast: 40_000,
    note: called(oneAhead),
  };
  const four = await batches(rig, size, 4);
  yield {
    name: 'batches of 100, durable, four producer connections, a call at a time on each',
    value: four.perSecond,
    unit: 'events/s',
    note: called(four),
    ...beside('NATS JetStream, sync_interval always', 'batches'),
  };
  yield* next({
    name: 'the same beside RabbitMQ',
    value: four.perSecond,
    unit: 'events/s',
    ...beside('RabbitMQ quorum queue, confirms', 'batches'),
  });
  const fourAhead = await batches(rig, size, 4, 4);
  yield {
    name: 'the same, four calls under way on each',
    value: fourAhead.perSecond,
    unit: 'events/s',
    atLeast: 60_000,
    note: called(fourAhead),
    ...beside('RabbitMQ quorum queue, confirms', 'batchesAhead'),
  };
}

async function* manyInFlightRows({ rig, size, beside }: Run): AsyncGenerator<Row> {
  const ahead = await singles(rig, size, 16, 16);
  yield {
    name: 'single produce on sixteen connections, sixteen under way on each, beside pg-boss on as many',
    value: ahead.perSecond,
    unit: '/s',
    ...(size === 'long' ? { timesPeer: 5 } : {}),
    note: called(ahead),
    ...beside('pg-boss', 'manyInFlight'),
  };
  yield* next({
    name: 'the same beside graphile-worker',
    value: ahead.perSecond,
    unit: '/s',
    timesPeer: 5,
    ...beside('graphile-worker', 'manyInFlight'),
  });
}
