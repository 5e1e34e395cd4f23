import { median, type Row, type Size } from '../row.ts';
import { EdgeRig, HOST } from './edge-rig.ts';
import type { Load } from './edge-load.ts';
import type { Peer } from './peers.ts';

const COUNTS = {
  short: { requests: 8_000, handshakes: 500, bytes: 1 << 30 },
  long: { requests: 30_000, handshakes: 3_000, bytes: 4 * (1 << 30) },
};
const [ROUNDS, WARM_UP] = [5, 5];
const AT_ONCE = 16;
/** Both offered: the server takes the one that it likes better. */
const BOTH = 'X25519MLKEM768:X25519';

interface Measured {
  readonly own: number;
  readonly beside: readonly { readonly peer: Peer; readonly value: number }[];
}

/** The ingress beside nginx and haproxy, each a process of its own with one core's worth of threads; CPU of the servers alone. */
export async function* peerRows(size: Size): AsyncGenerator<Row> {
  await using rig = await EdgeRig.start();
  const of = COUNTS[size];
  const missing = ['nginx', 'haproxy'].filter(name => !rig.peers.some(peer => peer.name === name));
  const skipped = missing.length > 0 ? [`not installed here: ${missing.join(', ')}`] : [];
  const requests = (port: number): Load => ({ kind: 'requests', port, host: HOST, count: of.requests, atOnce: AT_ONCE });
  const asked = await measured(rig, of.requests, requests);
  yield* compared('TLS ended, headers injected, forwarded to a TLS backend, all kept alive: CPU a request', asked, 3, skipped);
  for (const group of [BOTH, 'X25519']) {
    const load = (port: number): Load => ({ kind: 'handshakes', port, host: HOST, count: of.handshakes, atOnce: AT_ONCE, group });
    const row = `new TLS connections, ECDSA, ${group === BOTH ? 'X25519MLKEM768' : group}: CPU a handshake`;
    yield* compared(row, await measured(rig, of.handshakes, load), group === BOTH ? 1.8 : undefined, skipped, group === BOTH);
  }
  yield* bareRows(rig, of.bytes, skipped);
}

/**
 * In turns, so that a busy spell of the machine meets all; the median round of each. Before them it warms up: a compiler that compiles
 * while it serves says nothing of an ingress that has served for a minute.
 */
async function measured(rig: EdgeRig, count: number, load: (port: number) => Load): Promise<Measured> {
  const own: number[] = [];
  const beside = rig.peers.map(peer => ({ peer, values: [] as number[] }));
  for (let turn = 0; turn < WARM_UP; turn++) await rig.cpuOf(rig.ingress.pid, false, load(rig.ingress.port));
  for (const { peer } of beside) await rig.cpuOf(peer.process.pid as number, true, load(peer.port));
  for (let round = 0; round < ROUNDS; round++) {
    own.push((await rig.cpuOf(rig.ingress.pid, false, load(rig.ingress.port))) / count);
    for (const { peer, values } of beside) {
      values.push((await rig.cpuOf(peer.process.pid as number, true, load(peer.port))) / count);
    }
  }
  return { own: median(own), beside: beside.map(({ peer, values }) => ({ peer, value: median(values) })) };
}

function* compared(
  name: string,
  { own, beside }: Measured,
  most: number | undefined,
  skipped: readonly string[],
  hybrid = false,
): Generator<Row> {
  const row = { name, value: own, unit: 'µs' };
  if (beside.length === 0) return yield { ...row, note: skipped.join('; ') };
  for (const { peer, value } of beside) {
    const classical = hybrid && peer.group === 'X25519' ? [`${peer.name}'s OpenSSL has X25519 alone`] : [];
    const { name: called, version } = peer;
    // What is asked of handshakes is asked beside nginx.
    const bound = most !== undefined && !(hybrid && called !== 'nginx') ? { atMostTimesPeer: most } : {};
    yield { ...row, peer: { name: `${called} ${version}`, value }, ...bound, note: [...classical, ...skipped].join('; ') };
  }
}

async function* bareRows(rig: EdgeRig, bytes: number, skipped: readonly string[]): AsyncGenerator<Row> {
  const peer = rig.peers.find(({ bare }) => bare !== undefined);
  const [own, theirs]: [number[], number[]] = [[], []];
  const rate = (us: number) => bytes / us;
  for (let round = 0; round < ROUNDS; round++) {
    const load = (port: number): Load => ({ kind: 'bytes', port, host: 'web.ops.sys.localhost', count: bytes });
    own.push(rate(await rig.cpuOf(rig.ingress.pid, false, load(rig.ingress.port))));
    if (!peer) continue;
    theirs.push(rate(await rig.cpuOf(peer.process.pid as number, true, load(peer.bare as number))));
  }
  const beside = peer
    ? { peer: { name: `${peer.name} ${peer.version}, TCP mode`, value: median(theirs) }, timesPeer: 0.5 }
    : { note: skipped.join('; ') };
  yield { name: 'layer 4, piped: bytes a CPU second', value: median(own), unit: 'MB/CPU s', ...beside };
}
