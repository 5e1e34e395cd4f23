import { Agent, request } from 'node:https';

/**
 * Main of a process that asks a platform for something at a steady pace and never twice: `fleet-load.ts PORT HOST…`. It says what failed,
 * and when, on SIGTERM.
 */
const [port = '0', ...hosts] = process.argv.slice(2);
/** Between two requests of one loop: on a connection that is kept, and on one for each request. */
const PAUSE_MS = { kept: 30, own: 100 };
const LATE_MS = 10_000;
const failed: { at: number; host: string; why: string }[] = [];
let asked = 0;
let stopping = false;

function ask(host: string, agent: Agent): Promise<string> {
  return new Promise(resolve => {
    const outgoing = request(
      {
        host: '127.0.0.1',
        port: Number(port),
        path: '/v1/health',
        servername: host,
        headers: { host: `${host}:${port}` },
        agent,
        rejectUnauthorized: false,
      },
      response => {
        response.resume();
        response.on('end', () => resolve(String(response.statusCode)));
        response.on('error', error => resolve(error.message));
      },
    );
    outgoing.on('error', error => resolve((error as NodeJS.ErrnoException).code ?? error.message));
    outgoing.setTimeout(LATE_MS, () => outgoing.destroy(new Error('late')));
    outgoing.end();
  });
}

async function loop(host: string, keepAlive: boolean): Promise<void> {
  const agent = new Agent({ keepAlive, maxSockets: 1 });
  while (!stopping) {
    const answer = await ask(host, agent);
    asked += 1;
    if (answer !== '200') failed.push({ at: Date.now(), host, why: answer });
    await new Promise(resolve => setTimeout(resolve, keepAlive ? PAUSE_MS.kept : PAUSE_MS.own));
  }
}

process.on('SIGTERM', () => {
  stopping = true;
});
await Promise.all(hosts.flatMap(host => [loop(host, true), loop(host, true), loop(host, false)]));
process.stdout.write(JSON.stringify({ asked, failed }));
