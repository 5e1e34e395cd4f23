import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { World } from '../../../plugins/ingress/test/fixtures/world.ts';
import { screen } from '../../../plugins/ingress/src/screening/screen.ts';
import { median, microseconds, quantile, type Row, type Size, threadCpu } from '../row.ts';

const HOST = 'echo.ops.sys.localhost';
const COUNTS = { short: { screened: 5_000, seconds: 8 }, long: { screened: 50_000, seconds: 30 } };
const HEADERS = {
  host: HOST,
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  accept: 'text/html',
  cookie: 'session=0198f4b1c2d37abcdef; theme=dark',
  referer: `https://${HOST}/v1/orders?page=2`,
};
const ADDRESS = "Anna O'Hara, 12 King's Road, London; leave it at the door if nobody answers & ring twice. ";
const FORM = new URLSearchParams({ name: "Conan O'Brien", email: 'conan@example.com', note: ADDRESS.repeat(20) })
  .toString()
  .slice(0, 2_048);
/** Slow headers, slow bodies, answers that are read slowly, and ranges that overlap, as slowhttptest makes them. */
const ATTACKS: readonly (readonly [name: string, path: string, options: readonly string[]])[] = [
  ['slow headers', '/', ['-H', '-i', '2', '-x', '24']],
  ['slow bodies', '/', ['-B', '-i', '2', '-s', '8192', '-x', '10']],
  ['answers read slowly', '/endless', ['-X', '-w', '512', '-y', '1024', '-n', '5', '-z', '32', '-k', '3']],
  ['overlapping ranges', '/', ['-R', '-a', '10', '-b', '3000']],
];

/** The ingress: what screening costs, and ordinary requests while slow clients hold on to it. */
export async function* ingressRows(size: Size): AsyncGenerator<Row> {
  const { screened, seconds } = COUNTS[size];
  const get = { target: '/v1/orders?q=red+shoes&sort=price&page=3', headers: HEADERS };
  const form = {
    target: '/v1/orders',
    headers: { ...HEADERS, 'content-type': 'application/x-www-form-urlencoded' },
    body: Buffer.from(FORM),
  };
  yield {
    name: 'screening a GET with a query: CPU',
    value: await microseconds(screened, () => screen(get), threadCpu),
    unit: 'µs',
    limit: 60,
  };
  yield {
    name: 'screening a form of 2 KB: CPU',
    value: await microseconds(screened, () => screen(form), threadCpu),
    unit: 'µs',
    limit: 150,
    note: `${FORM.length} bytes with quotes and semicolons in them`,
  };
  if (spawnSync('slowhttptest', ['-h']).error) return;
  await using world = await World.start();
  const quiet = await asked(world, 200);
  await using bridge = await bridged(world);
  for (const [name, path, options] of ATTACKS) {
    const attack = spawn(
      'slowhttptest',
      [...options, '-c', '500', '-r', '200', '-l', String(seconds), '-p', '2', '-u', `http://127.0.0.1:${bridge.port}${path}`],
      { stdio: 'ignore' },
    );
    const over = once(attack, 'exit');
    const times: number[] = [];
    let failed = 0;
    while (attack.exitCode === null) {
      const { took, refused } = await asked(world, 20);
      times.push(...took);
      failed += refused;
    }
    await over;
    yield {
      name: `ordinary requests, each on a new connection, while slowhttptest keeps 500 ${name}: p99`,
      value: quantile(times, 0.99),
      unit: 'ms',
      peer: { name: 'quiet', value: quantile(quiet.took, 0.99) },
      note: `${times.length} asked, ${failed} failed; median ${median(times).toFixed(1)} ms`,
    };
  }
}

/** A way over TLS for a client that names neither the host nor the name of the connection. */
async function bridged(world: World): Promise<AsyncDisposable & { readonly port: number }> {
  const open = new Set<Socket>();
  const server = createServer(socket => {
    const onward = world.open(HOST);
    open.add(socket).add(onward);
    const end = () => (socket.destroy(), onward.destroy(), open.delete(socket), open.delete(onward));
    for (const side of [socket, onward]) side.on('error', end).on('close', end);
    socket.once('data', begun => {
      onward.write(begun.toString('latin1').replace(/Host: [^\r]+/i, `Host: ${HOST}`), 'latin1');
      socket.pipe(onward).pipe(socket);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    for (const socket of open) socket.destroy();
    await new Promise(resolve => server.close(resolve));
  };
  return { port: (server.address() as AddressInfo).port, [Symbol.asyncDispose]: close };
}

async function asked(world: World, count: number): Promise<{ took: number[]; refused: number }> {
  const took: number[] = [];
  let refused = 0;
  for (let turn = 0; turn < count; turn++) {
    const since = performance.now();
    const status = await world.ask(HOST).then(
      answer => answer.status,
      () => 0,
    );
    if (status !== 200) refused += 1;
    took.push(performance.now() - since);
  }
  return { took, refused };
}
