import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { once } from 'node:events';

/** Below what systems give to outgoing connections: one of those may not take the port while its server is started again. */
const [LOWEST, HIGHEST] = [20_000, 32_000];
const TRIES = 50;

/** A port of 127.0.0.1 that nobody listens on: `preferred` if it is free, else any. */
export async function freePort(preferred = 0): Promise<number> {
  if (preferred !== 0 && (await isFree(preferred))) return preferred;
  for (let turn = 0; turn < TRIES; turn++) {
    const port = randomInt(LOWEST, HIGHEST);
    if (await isFree(port)) return port;
  }
  throw new Error(`no port of 127.0.0.1 is free between ${LOWEST} and ${HIGHEST}`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
