import { Pool } from 'undici';

/** What it takes to reach the bus as a workload; it can be told to another process. */
export interface BusAddress {
  readonly port: number;
  readonly hostname: string;
  readonly credentials: { readonly cert: string; readonly key: string; readonly ca: string };
  readonly authorization: string;
}

/** A workload's way to the bus, by a client library. */
export class BusClient implements AsyncDisposable {
  readonly address: BusAddress;
  readonly #pools: Pool[] = [];

  constructor(address: BusAddress) {
    this.address = address;
  }

  /** Kept connections. */
  pool(connections: number): Pool {
    const { port, hostname, credentials } = this.address;
    const pool = new Pool(`https://127.0.0.1:${port}`, {
      connections,
      bodyTimeout: 0,
      connect: { ...credentials, servername: hostname, minVersion: 'TLSv1.3' },
    });
    this.#pools.push(pool);
    return pool;
  }

  get headers(): Record<string, string> {
    return { host: this.address.hostname, 'content-type': 'application/json', authorization: this.address.authorization };
  }

  async post<T>(pool: Pool, path: string, body: object): Promise<T> {
    const { statusCode, body: answer } = await pool.request({ method: 'POST', path, headers: this.headers, body: JSON.stringify(body) });
    if (statusCode !== 200) throw new Error(`${path} answered ${statusCode}: ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#pools.map(pool => pool.destroy()));
  }
}
