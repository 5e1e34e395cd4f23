import { FLEET_KEYS } from '@platform/sdk';
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { HEADER_BYTES } from '@platform/kernel/http/internal-listener';
import { type KeyValue, connectKeyValue } from '@platform/kernel/storage/key-value';
import type { TestStores } from '../stores/stores.ts';

const HOUR_MS = 3_600_000;

/**
 * A real server over post-quantum mutual TLS that stands for services whose code is not run: it has a certificate with their names, and is
 * announced as their instance where every process on these stores looks.
 */
export class BackendServer implements AsyncDisposable {
  /** Has no answer to anything yet: its test listens for `request` and `upgrade`. */
  readonly server: Server;
  readonly #kv: KeyValue;

  private constructor(server: Server, kv: KeyValue) {
    this.server = server;
    this.#kv = kv;
  }

  /** Listens for `services` and announces nothing. */
  static async start({ authority: { pq }, stores }: TestStores, services: readonly string[]): Promise<BackendServer> {
    const hosts = services.map(service => `${service}.ops.sys.localhost`);
    const leaf = await pq.issue({
      commonName: hosts[0] as string,
      names: hosts.map(host => `dns:${host}`),
      usages: ['server'],
      days: 1,
    });
    const server = createServer({
      key: leaf.key as string,
      cert: leaf.chain,
      ca: pq.files.rootCertificate,
      requestCert: true,
      rejectUnauthorized: true,
      minVersion: 'TLSv1.3',
      ecdhCurve: 'X25519MLKEM768',
      maxHeaderSize: HEADER_BYTES,
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new BackendServer(server, await connectKeyValue(stores.keyValueUrl));
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Says that a service answers here, or on another port of this machine; `at` is when it was last heard of, the coming hour by itself. */
  async announce(service: string, { port = this.port, at = Date.now() + HOUR_MS }: { port?: number; at?: number } = {}): Promise<void> {
    const seen = new Date(at).toISOString();
    const row = { service_type: service, ip: '127.0.0.1', port, pid: 1, status: 'Active', last_health_at: seen, started_at: seen };
    await this.#kv.client.hset(FLEET_KEYS.instances(service), `127.0.0.1:${port}`, JSON.stringify(row));
    await this.changed(service);
  }

  /** Takes away every instance of a service. */
  async withdraw(service: string): Promise<void> {
    await this.#kv.client.del(FLEET_KEYS.instances(service));
    await this.changed(service);
  }

  /** Says that something of a service changed, as the supervisor does. */
  async changed(service: string): Promise<void> {
    await this.#kv.client.publish(FLEET_KEYS.changed, JSON.stringify({ service_type: service }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections();
    await new Promise(resolve => this.server.close(resolve));
    await this.#kv.close();
  }
}
