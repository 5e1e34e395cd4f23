import { FLEET_KEYS } from '@platform/sdk';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Pool } from 'undici';

/**
 * A service at its own address, called as a workload with a certificate of this data directory: what the ingress and the gateway stand
 * before.
 */
export class DirectService implements AsyncDisposable {
  readonly #pool: Pool;
  readonly #host: string;

  private constructor(pool: Pool, host: string) {
    this.#pool = pool;
    this.#host = host;
  }

  static async open(dataDir: string, service: string): Promise<DirectService> {
    const record = readdirSync(join(dataDir, 'run')).find(name => /^(kv|valkey).*\.json$/.test(name)) as string;
    const { port } = JSON.parse(readFileSync(join(dataDir, 'run', record), 'utf8')) as { port: number };
    const store = new Redis({ port, password: readFileSync(join(dataDir, 'keys', 'kv.password'), 'utf8').trim() });
    const [row = '{}'] = await store.hvals(FLEET_KEYS.instances(service));
    store.disconnect();
    const instance = JSON.parse(row) as { ip: string; port: number };
    const host = `${service}.ops.sys.localhost`;
    const read = (...parts: string[]) => readFileSync(join(dataDir, ...parts));
    const connect = {
      servername: host,
      ca: read('ca', 'root.crt'),
      cert: read('keys', 'web', 'client.crt'),
      key: read('keys', 'web', 'client.key'),
      minVersion: 'TLSv1.3' as const,
    };
    return new DirectService(new Pool(`https://${instance.ip}:${instance.port}`, { connections: 1, connect }), host);
  }

  async get(path: string): Promise<{ status: number }> {
    const { statusCode, body } = await this.#pool.request({ method: 'GET', path, headers: { host: this.#host } });
    await body.dump();
    return { status: statusCode };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#pool.destroy();
  }
}
