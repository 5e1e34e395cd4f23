import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import { median, type Row } from '../row.ts';
import type { FunctionServer, ServerUsage } from './function-server.ts';

const HOST = 'func.ops.sys.localhost';
/** Below the fifty of an environment. */
const CONNECTIONS = 32;
const REQUESTS = 3_000;
const ROUNDS = 3;

/** An execution over HTTP with policy, record, events and its place in the store. */
export async function* httpRows(): AsyncGenerator<Row> {
  const child = fork(fileURLToPath(new URL('./function-server.ts', import.meta.url)), { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  try {
    const [server] = (await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => Promise.reject(new Error('the server did not start'))),
    ])) as [FunctionServer];
    const rounds = await executions(child, server);
    yield {
      name: 'an execution over HTTP with policy, record and events: CPU of the service and its guests',
      value: median(rounds.map(({ cpuUs }) => cpuUs)),
      unit: 'µs',
      limit: 1_500,
      note: `${CONNECTIONS} kept connections, ${Math.round(median(rounds.map(({ perSecond }) => perSecond)))} /s; not counted: the database and the store`,
    };
  } finally {
    if (child.connected) {
      const gone = once(child, 'exit');
      child.disconnect();
      await gone;
    }
  }
}

async function usage(child: ChildProcess): Promise<ServerUsage> {
  const answer = once(child, 'message');
  child.send('usage');
  return ((await answer) as [ServerUsage])[0];
}

async function executions(
  child: ChildProcess,
  { port, ca, authorization }: FunctionServer,
): Promise<{ cpuUs: number; perSecond: number }[]> {
  const pool = new Pool(`https://127.0.0.1:${port}`, {
    connections: CONNECTIONS,
    connect: { ca, servername: HOST, minVersion: 'TLSv1.3' },
  });
  let number = 0;
  const one = async () => {
    const body = JSON.stringify({ hook: 'hook', context: { amount_minor: 250_000 }, idempotency_key: `bench${(number += 1)}` });
    const { statusCode, body: answer } = await pool.request({
      method: 'POST',
      path: '/v1/modules/product/echo/execute',
      headers: { host: HOST, 'content-type': 'application/json', authorization },
      body,
    });
    if (statusCode !== 200) throw new Error(await answer.text());
    await answer.dump();
  };
  const rounds = [];
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      let left = REQUESTS;
      const caller = async () => {
        while (left-- > 0) await one();
      };
      const [{ cpuMs }, from] = [await usage(child), performance.now()];
      await Promise.all(Array.from({ length: CONNECTIONS }, caller));
      const took = performance.now() - from;
      // The first one warms up.
      if (round > 0)
        rounds.push({ cpuUs: (((await usage(child)).cpuMs - cpuMs) * 1_000) / REQUESTS, perSecond: (REQUESTS * 1_000) / took });
    }
  } finally {
    await pool.destroy();
  }
  return rounds;
}
