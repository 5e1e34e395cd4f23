import { createServer, type Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { SecureContext, TLSSocket } from 'node:tls';
import type { Logger } from '@platform/sdk';
import { kernelProblem } from '../base/kernel-problem.ts';
import type { PqMode } from '../identity/certificates/tls.ts';
import { peerOf } from '../identity/certificates/tls.ts';
import type { RevokedCertificates } from '../identity/certificates/revoked-certificates.ts';
import { problemResponse } from './answers/problem-response.ts';
import type { ServiceApp } from './service-app.ts';

/** As much as the ingress takes from a client (ING-038), and room for what it puts in besides. */
export const HEADER_BYTES = 65_536 + 8_192;
const HEADER_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 65_000;
/** Behind every deadline of a body, which a route names (`within`, an hour at most). */
const REQUEST_MS = 3_660_000;

export interface InternalListenerOptions {
  readonly log: Logger;
  readonly pqMode: PqMode;
  /** Certificate by server name; also the default for clients that name none. */
  readonly contextFor: (servername: string | undefined) => SecureContext | undefined;
  /** The anchor client certificates must chain to. */
  readonly clientRoot: string;
  readonly key: string;
  readonly cert: string;
  readonly platformHost: (service: string) => string;
  /** A caller that shows one of these is refused, whatever it asks for, and loses the connections it has. */
  readonly revoked?: RevokedCertificates;
}

/** The one post-quantum mutual-TLS listener of a process; the host name picks the service (day-one, Ports). */
export class InternalListener implements AsyncDisposable {
  readonly #server: Server;
  readonly #apps = new Map<string, ServiceApp>();
  readonly #hosts = new Map<string, ServiceApp>();
  readonly #options: InternalListenerOptions;
  readonly #connected = new Map<string, Set<TLSSocket>>();
  readonly #hearing: Disposable | undefined;

  constructor(options: InternalListenerOptions) {
    this.#options = options;
    this.#server = createServer({
      key: options.key,
      cert: options.cert,
      ca: options.clientRoot,
      minVersion: 'TLSv1.3',
      ecdhCurve: options.pqMode === 'strict' ? 'X25519MLKEM768' : 'X25519MLKEM768:X25519:P-256',
      // Enrollment and health come without a certificate; one that is shown must be ours (checked on connection).
      requestCert: true,
      rejectUnauthorized: false,
      maxHeaderSize: HEADER_BYTES,
      requireHostHeader: false,
      SNICallback: (name, done) => {
        const context = options.contextFor(name);
        done(null, context);
      },
    });
    this.#server.maxHeadersCount = 0;
    this.#server.headersTimeout = HEADER_TIMEOUT_MS;
    this.#server.requestTimeout = REQUEST_MS;
    this.#server.keepAliveTimeout = KEEP_ALIVE_MS;
    this.#server.on('secureConnection', (socket: TLSSocket) => {
      const shown = socket.getPeerX509Certificate?.() !== undefined;
      if (shown && !socket.authorized) socket.destroy();
      socket.setNoDelay(true);
      if (shown) this.#remember(socket);
    });
    this.#server.on('tlsClientError', error => options.log.debug({ err: error }, 'handshake failed'));
    this.#server.on('request', (req, res) => this.#request(req, res));
    this.#hearing = options.revoked?.onRevoked(thumbprints => {
      for (const thumbprint of thumbprints) for (const socket of this.#connected.get(thumbprint) ?? []) socket.destroy();
    });
    this.#server.on('upgrade', (req, socket, head) => {
      const app = this.#refuses(req) ? undefined : this.#pick(req);
      if (app) void app.upgrade(req, socket, head);
      else socket.end('HTTP/1.1 421 Misdirected Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
    });
  }

  #remember(socket: TLSSocket): void {
    const thumbprint = peerOf(socket)?.thumbprint;
    if (thumbprint === undefined || !this.#options.revoked) return;
    const sockets = this.#connected.get(thumbprint) ?? new Set();
    this.#connected.set(thumbprint, sockets.add(socket));
    socket.once('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0) this.#connected.delete(thumbprint);
    });
  }

  #refuses(req: IncomingMessage): boolean {
    const peer = peerOf(req.socket as TLSSocket);
    return peer !== undefined && (this.#options.revoked?.refuses(peer.thumbprint) ?? false);
  }

  mount(app: ServiceApp): Disposable {
    const { id, hosts } = app.manifest;
    const names = [this.#options.platformHost(id), ...hosts.map(host => this.#options.platformHost(host))];
    this.#apps.set(id, app);
    for (const name of names) this.#hosts.set(name, app);
    return {
      [Symbol.dispose]: () => {
        this.#apps.delete(id);
        for (const name of names) this.#hosts.delete(name);
      },
    };
  }

  async listen(host: string, port = 0): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => resolve());
    });
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#hearing?.[Symbol.dispose]();
    this.#server.closeIdleConnections();
    const closed = new Promise<void>(resolve => {
      this.#server.close(() => resolve());
    });
    this.#server.closeAllConnections();
    await closed;
  }

  #request(req: IncomingMessage, res: ServerResponse): void {
    const revoked = this.#refuses(req);
    const app = revoked ? undefined : this.#pick(req);
    if (app) return app.handle(req, res);
    const problem = revoked
      ? kernelProblem('actor_revoked', { detail: 'The client certificate was revoked.', headers: { connection: 'close' } })
      : kernelProblem('misdirected');
    const { status, headers, body } = problemResponse(problem, {
      service: 'kernel',
      correlationId: 'kernel-unrouted',
      log: this.#options.log,
    });
    res.writeHead(status, headers).end(body);
  }

  /** The ingress names the service it resolved; everybody else is taken at the host name's word. */
  #pick(req: IncomingMessage): ServiceApp | undefined {
    const peer = peerOf(req.socket as TLSSocket);
    const named =
      peer && typeof req.headers['x-platform-service'] === 'string' ? this.#apps.get(req.headers['x-platform-service']) : undefined;
    if (named) return named;
    const host = (req.headers.host ?? '').toLowerCase().replace(/:\d+$/, '').replace(/\.$/, '');
    return this.#hosts.get(host);
  }
}
