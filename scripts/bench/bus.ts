import type { Row } from './row.ts';
import { BusRig } from './bus/bus-rig.ts';
import { latencyRows } from './bus/latencies.ts';
import { peerFigures } from './bus/peers.ts';
import type { PeerFigures } from './bus/peers/figures.ts';
import { batches, consumed, type Produced, singles } from './bus/throughput.ts';

const MiB = 2 ** 20;

/** The event bus beside what its users could have taken instead, on the same disk in the same run. */
export async function busRows(): Promise<Row[]> {
  const peers = await peerFigures();
  await using rig = await BusRig.start();
  const single = await singles(rig, 64);
  const one = await batches(rig, 1);
  const oneAhead = await batches(rig, 1, 4);
  const four = await batches(rig, 4);
  const fourAhead = await batches(rig, 4, 4);
  const pulled = await consumed(rig, 4);
  const { rss } = await rig.bus.usage();
  const latencies = await latencyRows(rig);
  // Not before: what so many at once leave in memory is no part of the rates that are asked for.
  const ahead = await singles(rig, 16, 16);
  const beside = (name: keyof typeof peers, figure: keyof PeerFigures) => {
    const value = peers[name]?.[figure];
    return value === undefined ? {} : { peer: { name, value } };
  };
  const called = ({ p99Ms }: Produced) => `p99 of a call ${p99Ms.toFixed(1)} ms`;
  return [
    {
      name: 'single produce, mutual TLS, token and policy checked, durable, 64 at once',
      value: single.perSecond,
      unit: '/s',
      atLeast: 8_000,
      ...beside('NATS JetStream, sync_interval always', 'inFlight'),
    },
    { name: 'the same, p99', value: single.p99Ms, unit: 'ms', limit: 30 },
    { name: 'the same beside RabbitMQ', value: single.perSecond, unit: '/s', ...beside('RabbitMQ quorum queue, confirms', 'inFlight') },
    { name: 'the same beside pg-boss', value: single.perSecond, unit: '/s', ...beside('pg-boss', 'inFlight') },
    { name: 'the same beside graphile-worker', value: single.perSecond, unit: '/s', ...beside('graphile-worker', 'inFlight') },
    { name: 'batches of 100, durable, one producer connection, a call at a time', value: one.perSecond, unit: 'events/s', note: called(one) },
    { name: 'the same, four calls under way on it', value: oneAhead.perSecond, unit: 'events/s', atLeast: 40_000, note: called(oneAhead) },
    {
      name: 'batches of 100, durable, four producer connections, a call at a time on each',
      value: four.perSecond,
      unit: 'events/s',
      note: called(four),
      ...beside('NATS JetStream, sync_interval always', 'batches'),
    },
    { name: 'the same beside RabbitMQ', value: four.perSecond, unit: 'events/s', ...beside('RabbitMQ quorum queue, confirms', 'batches') },
    {
      name: 'the same, four calls under way on each',
      value: fourAhead.perSecond,
      unit: 'events/s',
      atLeast: 60_000,
      note: called(fourAhead),
      ...beside('RabbitMQ quorum queue, confirms', 'batchesAhead'),
    },
    { name: 'pull and acknowledge over HTTP, batches of 100, four workers', value: pulled.perSecond, unit: 'events/s', atLeast: 30_000, note: `${pulled.events.toLocaleString('en')} events` },
    { name: 'resident memory of the bus process after that', value: rss / MiB, unit: 'MB', limit: 200 },
    ...latencies,
    {
      name: 'single produce on sixteen connections, sixteen under way on each, beside pg-boss on as many',
      value: ahead.perSecond,
      unit: '/s',
      timesPeer: 5,
      note: called(ahead),
      ...beside('pg-boss', 'manyInFlight'),
    },
    { name: 'the same beside graphile-worker', value: ahead.perSecond, unit: '/s', timesPeer: 5, ...beside('graphile-worker', 'manyInFlight') },
  ];
}
