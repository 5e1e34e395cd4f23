import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import type { Asked, Server } from './resolve-server.ts';
import { median, type Row } from './row.ts';

const CONNECTIONS = 64;
const REQUESTS = 12_000;
const ROUNDS = 5;
const LOOKUPS = 500_000;

/** Resolving a host: in process, and over real mutual TLS beside a bare server. «Per core» is per CPU second of the serving process. */
export async function resolveRows(): Promise<Row[]> {
  const child = fork(fileURLToPath(new URL('./resolve-server.ts', import.meta.url)), {
    execArgv: ['--disable-warning=ExperimentalWarning', ...(process.env['BENCH_PROFILE'] ? ['--cpu-prof', `--cpu-prof-dir=${process.env['BENCH_PROFILE']}`] : [])],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  try {
    const [servers] = (await Promise.race([once(child, 'message'), once(child, 'exit').then(() => Promise.reject(new Error('the server did not start')))])) as [Record<'platform' | 'bare', Server>];
    const [platform, bare] = [await overTls(child, servers.platform), await overTls(child, servers.bare)];
    const lookups: number[] = [];
    for (let round = 0; round <= ROUNDS; round++) lookups.push(LOOKUPS / (await ask(child, { lookups: LOOKUPS, atOnce: 1_000 })));
    const lookup = median(lookups.slice(1));
    return [
      { name: 'host looked up in process, per core', value: lookup, unit: '/s', atLeast: 200_000, note: 'the version of all domains is read for every moment; 1,000 at once' },
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

/** Requests per CPU second of the server and per second of time, medians of several rounds after one that warms up. */
async function overTls(child: ChildProcess, { port, hostname, ...credentials }: Server): Promise<{ perCore: number; perSecond: number }> {
  const host = 'sys.ops.sys.localhost';
  const pool = new Pool(`https://127.0.0.1:${port}`, { connections: CONNECTIONS, connect: { ...credentials, servername: host, minVersion: 'TLSv1.3' } });
  await using _ = { [Symbol.asyncDispose]: () => pool.destroy() };
  const path = `/v1/resolve/hostname?hostname=${hostname}`;
  const rounds: { perCore: number; perSecond: number }[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    let left = REQUESTS;
    const caller = async () => {
      while (left-- > 0) {
        const { statusCode, body } = await pool.request({ method: 'GET', path, headers: { host } });
        if (statusCode !== 200) throw new Error(await body.text());
        await body.dump();
      }
    };
    const [cpu, start] = [await ask(child, 'cpu'), performance.now()];
    await Promise.all(Array.from({ length: CONNECTIONS }, caller));
    const spent = (await ask(child, 'cpu')) - cpu;
    rounds.push({ perCore: REQUESTS / spent, perSecond: (REQUESTS * 1_000) / (performance.now() - start) });
  }
  return { perCore: median(rounds.slice(1).map(({ perCore }) => perCore)), perSecond: median(rounds.slice(1).map(({ perSecond }) => perSecond)) };
}
