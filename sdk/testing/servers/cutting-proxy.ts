import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Between clients and one server: passes bytes on, and cuts connections in the middle of an answer, or all of them, when told to. */
export class CuttingProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #target: () => number;
  /** Bytes of answers that still pass before every connection they come on is cut; undefined: none is. */
  #cutAfter: (() => number) | undefined;
  #parted = false;

  private constructor(target: () => number) {
    this.#target = target;
    this.#server = createServer(client => this.#pass(client));
  }

  /** `target`: the port of 127.0.0.1 that is meant at the moment. */
  static async start(target: () => number): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** From now on each connection ends after so many bytes of its answers; without an argument none does. */
  cut(after?: () => number): void {
    this.#cutAfter = after;
  }

  /** Nothing passes from now on, or again: connections end, and new ones do as soon as they come. */
  part(parted: boolean): void {
    this.#parted = parted;
    if (parted) for (const socket of this.#sockets) socket.destroy();
  }

  #pass(client: Socket): void {
    if (this.#parted) return void client.on('error', () => undefined).destroy();
    const upstream = connect(this.#target(), '127.0.0.1');
    let left = Number.POSITIVE_INFINITY;
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      this.#sockets.add(socket);
      socket.on('error', end).on('close', () => {
        this.#sockets.delete(socket);
        end();
      });
    }
    client.on('data', chunk => {
      if (!upstream.write(chunk)) client.pause();
    });
    upstream.on('drain', () => client.resume());
    upstream.on('data', (chunk: Buffer) => {
      if (this.#cutAfter && left === Number.POSITIVE_INFINITY) left = this.#cutAfter();
      if (!this.#cutAfter) left = Number.POSITIVE_INFINITY;
      client.write(chunk.subarray(0, Math.min(chunk.length, left)));
      left -= chunk.length;
      // In order, so that the beginning of the answer arrives before the end of the connection.
      if (left <= 0) client.end(end);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}
