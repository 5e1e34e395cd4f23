import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import type { Asked, Server } from '../../load/resolve-server.ts';
import { median, type Row } from '../../row.ts';

const HOST = 'sys.ops.sys.localhost';
const CONNECTIONS = 64;
const REQUESTS = 12_000;
const ROUNDS = 5;
const LOOKUPS = 500_000;

interface Pace {
  readonly perCore: number;
  readonly perSecond: number;
}

/**
 * Resolving a host: in process, and over real mutual TLS beside a bare server. «Per core» is per CPU second of the serving process.
 * With BENCH_PROFILE set to a folder, that process leaves its CPU profile there.
 */
export async function* resolveRows(): AsyncGenerator<Row> {
  const child = fork(fileURLToPath(new URL('../../load/resolve-server.ts', import.meta.url)), {
    execArgv: [
      ...process.execArgv,
      ...(process.env['BENCH_PROFILE'] ? ['--cpu-prof', `--cpu-prof-dir=${process.env['BENCH_PROFILE']}`] : []),
    ],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  try {
    const [servers] = (await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => Promise.reject(new Error('the server did not start'))),
    ])) as [Record<'platform' | 'bare', Server>];
    const [platform, bare] = await sideBySide(child, servers);
    const lookups: number[] = [];
    for (let round = 0; round <= ROUNDS; round++) lookups.push(LOOKUPS / (await ask(child, { lookups: LOOKUPS, atOnce: 1_000 })));
    const lookup = median(lookups.slice(1));
    yield* [
      {
        name: 'host looked up in process, per core',
        value: lookup,
        unit: '/s',
        atLeast: 200_000,
        note: 'the version of all domains is read for every moment; 1,000 at once',
      },
      {
        name: 'host resolved over mutual TLS, per core',
        value: platform.perCore,
        unit: '/s',
        atLeast: 8_000,
        peer: { name: 'bare node:https, a constant', value: bare.perCore },
        note: `${CONNECTIONS} kept connections`,
      },
      {
        name: 'the same, plain throughput on this machine',
        value: platform.perSecond,
        unit: '/s',
        peer: { name: 'bare node:https', value: bare.perSecond },
        note: 'the caller takes its share of the cores',
      },
    ];
  } finally {
    if (child.connected) {
      const gone = once(child, 'exit');
      child.disconnect();
      await gone;
    }
  }
}

async function ask(child: ChildProcess, asked: Asked): Promise<number> {
  const answer = once(child, 'message');
  child.send(asked);
  return ((await answer) as [number])[0];
}

/** Asks one server from kept connections, one request after another on each; a round says what it took. */
class Caller implements AsyncDisposable {
  readonly #pool: Pool;
  readonly #path: string;

  constructor({ port, hostname, ...credentials }: Server) {
    this.#pool = new Pool(`https://127.0.0.1:${port}`, {
      connections: CONNECTIONS,
      connect: { ...credentials, servername: HOST, minVersion: 'TLSv1.3' },
    });
    this.#path = `/v1/resolve/hostname?hostname=${hostname}`;
  }

  /** Requests per CPU second of the server and per second of time. */
  async round(child: ChildProcess): Promise<Pace> {
    let left = REQUESTS;
    const caller = async () => {
      while (left-- > 0) {
        const { statusCode, body } = await this.#pool.request({ method: 'GET', path: this.#path, headers: { host: HOST } });
        if (statusCode !== 200) throw new Error(await body.text());
        await body.dump();
      }
    };
    const [cpu, start] = [await ask(child, 'cpu'), performance.now()];
    await Promise.all(Array.from({ length: CONNECTIONS }, caller));
    const spent = (await ask(child, 'cpu')) - cpu;
    return { perCore: REQUESTS / spent, perSecond: (REQUESTS * 1_000) / (performance.now() - start) };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#pool.destroy();
  }
}

const middle = (rounds: readonly Pace[]): Pace => ({
  perCore: median(rounds.map(({ perCore }) => perCore)),
  perSecond: median(rounds.map(({ perSecond }) => perSecond)),
});

/** Both servers in turn, so that they meet the same machine; the first round of each warms up. */
async function sideBySide(child: ChildProcess, servers: Record<'platform' | 'bare', Server>): Promise<[Pace, Pace]> {
  await using platform = new Caller(servers.platform);
  await using bare = new Caller(servers.bare);
  const rounds: [Pace[], Pace[]] = [[], []];
  for (let round = 0; round <= ROUNDS; round++) {
    const [ours, constant] = [await platform.round(child), await bare.round(child)];
    if (round === 0) continue;
    rounds[0].push(ours);
    rounds[1].push(constant);
  }
  return [middle(rounds[0]), middle(rounds[1])];
}
