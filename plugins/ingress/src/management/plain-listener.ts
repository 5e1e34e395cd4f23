import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Ctx } from '../context.ts';

const [HEADER_BYTES, HEADER_MS, REQUEST_MS, CHECK_EVERY_MS, SILENT_MS] = [16_384, 5_000, 10_000, 1_000, 30_000];
const MOST_CONNECTIONS = 256;
const FIXED_404 = 'HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n';

/** The listener doors of the contract that speak plain HTTP. */
export type PlainDoor = 'challenges' | 'management';

/** The answer to everything a plain port does not serve (G-PROXY-04). */
export const notFound = (res: ServerResponse): void => void res.writeHead(404, { 'content-length': '0', connection: 'close' }).end();

/** A bounded plain-HTTP port of the ingress. `admits` is asked at accept, before a byte is read. */
export class PlainListener implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(answer: (req: IncomingMessage, res: ServerResponse) => void, admits: (socket: Socket) => boolean = () => true) {
    this.#server = createServer({
      maxHeaderSize: HEADER_BYTES,
      requireHostHeader: false,
      headersTimeout: HEADER_MS,
      requestTimeout: REQUEST_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      shouldUpgradeCallback: () => false,
    });
    this.#server.maxConnections = MOST_CONNECTIONS;
    this.#server.timeout = SILENT_MS;
    this.#server.on('connection', socket => {
      if (!admits(socket)) return socket.destroy();
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('request', answer);
    for (const event of ['clientError', 'connect'] as const)
      this.#server.on(event, (_: unknown, socket: Socket) =>
        socket.writable ? socket.on('error', () => socket.destroy()).end(FIXED_404) : socket.destroy(),
      );
  }

  /** Listens behind a door of the contract. */
  async listen(ctx: Pick<Ctx, 'listen'>, door: PlainDoor, at: { readonly port: number; readonly address: string }): Promise<void> {
    await ctx.listen(door, this.#server, at);
    this.#server.on('error', () => undefined);
  }

  get port(): number {
    const at = this.#server.address();
    return typeof at === 'object' && at ? at.port : 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>(resolve => {
      this.#server.close(() => resolve());
    });
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}
