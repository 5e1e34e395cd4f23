import { createServer as createHttp, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttp2, type Http2Server, type ServerHttp2Session } from 'node:http2';
import { createServer as createTcp, Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { createServer as createTls, type Server as TlsServer } from 'node:tls';
import type { EdgeCertificates } from './certificates/edge-certificates.ts';
import { EDGE_TLS } from './certificates/edge-certificates.ts';
import { isPostQuantum } from './connections/client-hello.ts';
import { peekHello } from './connections/hello-peek.ts';
import { isPiped } from './connections/piped.ts';
import { tunnel } from './connections/tunnel.ts';
import type { Ctx } from './context.ts';
import { EdgeBounds } from './edge-bounds.ts';
import type { HostMappings } from './host-mappings.ts';
import type { EdgeTraffic } from './management/edge-traffic.ts';
import { type Refusal, refuse, refuseSocket } from './refusal.ts';
import type { RequestDoor } from './request-door.ts';
import { SILENT_MS } from './unread-answers.ts';

const HEADER_BYTES = 65_536;
const CHECK_EVERY_MS = 250;
const KEEP_ALIVE_MS = 65_000;
const PROBE_MS = 60_000;
/** A leaving instance: answers say so for a while, then idle connections are left one more second, and everything has its end. */
const [TOLD_MS, IDLE_AFTER_MS, SWEEP_MS, LEAVE_MS] = [300, 1_000, 100, 8_000];
const STREAMS = 100;
/** HTTP/2 ends a stream beyond this; up to it, what is too much is answered (facts, section 3). */
const HEADER_PAIRS = 128;
const TUNNEL: Refusal = { status: 501, code: 'not_implemented', title: 'This server opens no tunnels' };

export interface EdgeListenerParts {
  readonly mappings: HostMappings;
  readonly certificates: EdgeCertificates;
  readonly door: RequestDoor;
  readonly traffic: EdgeTraffic;
}

/**
 * The edge port: a bare accept loop (ING-029). Each connection's ClientHello is read whole and put back; names of the platform that a
 * workload inside asks for are piped to their backend as they are, all else ends here (ING-002, G-PROXY-01) in HTTP/2 or HTTP/1.1 by ALPN.
 */
export class EdgeListener implements AsyncDisposable {
  readonly #ctx: Ctx;
  readonly #parts: EdgeListenerParts;
  readonly #tcp: Server;
  readonly #tls: TlsServer;
  readonly #http1: HttpServer;
  readonly #http2: Http2Server;
  readonly #bounds: EdgeBounds;
  readonly #headerMs: number;
  /** Where connections come from whose key exchange is post-quantum: the server's side of TLS does not say. */
  readonly #postQuantum = new Set<string>();
  readonly #sessions = new Set<ServerHttp2Session>();
  #shared = false;
  #leaving = false;

  constructor(ctx: Ctx, parts: EdgeListenerParts) {
    this.#ctx = ctx;
    this.#parts = parts;
    this.#bounds = new EdgeBounds(ctx);
    this.#headerMs = ctx.config.headerTimeoutS * 1_000;
    this.#http1 = this.#makeHttp1();
    this.#http2 = this.#makeHttp2();
    this.#tls = this.#makeTls();
    this.#tcp = createTcp(
      { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: PROBE_MS },
      socket => void this.#accept(socket),
    );
    ctx.own(ctx.every(10_000, () => this.#report()));
  }

  /** Gauges and counters of the edge's connections. */
  get figures(): Readonly<Record<string, number>> {
    return Object.fromEntries(Object.entries(this.#bounds.figures).map(([name, value]) => [`edge_${name}`, value]));
  }

  async listen(port: number, address: string): Promise<void> {
    try {
      this.#shared = await this.#ctx.listen('edge', this.#tcp, { port, address });
    } catch (error) {
      throw new Error(`the edge port ${port} cannot be opened: ${(error as Error).message}. Set PLATFORM_PROXY_HTTPS_PORT to a free one.`, {
        cause: error,
      });
    }
    // Its own deadlines run from here on; it never listens itself.
    this.#http1.emit('listening');
  }

  /**
   * Leaves a shared socket to the next instance and refuses nobody: who asks is told to come again by another connection, then nothing new
   * is accepted, then connections that are idle go, and the last one ends it. `http.Server.close` would cut idle ones while a request is on
   * its way.
   */
  async leave(): Promise<void> {
    if (!this.#shared) return;
    this.#leaving = true;
    await delay(TOLD_MS);
    const gone = new Promise<void>(resolve => Server.prototype.close.call(this.#tcp, () => resolve()));
    // HTTP/2 has a word for it: what is under way ends, and nothing new is begun.
    for (const session of this.#sessions) session.close();
    await delay(IDLE_AFTER_MS);
    const sweep = setInterval(() => this.#http1.closeIdleConnections(), SWEEP_MS);
    await Promise.race([gone, delay(LEAVE_MS, undefined, { ref: false })]);
    clearInterval(sweep);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>(resolve => {
      if (this.#tcp.listening) this.#tcp.close(() => resolve());
      else resolve();
    });
    this.#bounds[Symbol.dispose]();
    this.#http1.close(() => undefined);
    await closed;
  }

  async #accept(socket: Socket): Promise<void> {
    const { traffic, mappings } = this.#parts;
    socket.on('error', () => socket.destroy());
    if (!this.#bounds.admit(socket)) return;
    traffic.count('connections');
    const hello = await peekHello(socket, this.#headerMs);
    if (!hello?.name) return void socket.destroy();
    const mapping = await mappings.find(hello.name).catch(error => this.#ctx.log.debug({ err: error }, 'a host could not be resolved'));
    // A name nobody has ends here, before it costs a handshake (ING-031).
    if (!mapping || socket.destroyed) return void socket.destroy();
    if (isPiped(this.#ctx.config, { from: socket.remoteAddress, hello, source: mapping.source })) {
      traffic.count('piped');
      return tunnel(this.#ctx, mapping.service, socket);
    }
    if (isPostQuantum(hello)) {
      const from = fromOf(socket);
      this.#postQuantum.add(from);
      socket.once('close', () => this.#postQuantum.delete(from));
    }
    socket.allowHalfOpen = false;
    // Its certificate may take a while to come (KRN-029); the time that a client has for its handshake begins then.
    await this.#parts.certificates.contextFor(mapping).catch(() => undefined);
    if (socket.destroyed) return;
    this.#tls.emit('connection', socket);
  }

  #makeTls(): TlsServer {
    const { mappings, certificates, traffic } = this.#parts;
    const server = createTls({
      ...EDGE_TLS,
      handshakeTimeout: this.#headerMs,
      ALPNProtocols: ['h2', 'http/1.1'],
      SNICallback: (name, done) => {
        mappings
          .find(name.toLowerCase().replace(/\.$/, ''))
          .then(mapping => mapping && certificates.contextFor(mapping))
          .then(
            context => (context ? done(null, context) : done(new Error('unrecognized_name'))),
            error => done(error as Error),
          );
      },
    });
    server.on('secureConnection', socket => {
      traffic.count('handshakes');
      if (this.#postQuantum.has(fromOf(socket))) traffic.count('handshakes_post_quantum');
      socket.on('error', () => socket.destroy());
      (socket.alpnProtocol === 'h2' ? this.#http2 : this.#http1).emit('connection', socket);
    });
    server.on('tlsClientError', (error, socket) => {
      traffic.count('handshakes_failed');
      socket.destroy();
      this.#ctx.log.debug({ err: error }, 'edge handshake failed');
    });
    return server;
  }

  #makeHttp1(): HttpServer {
    const { door } = this.#parts;
    const server = createHttp({
      maxHeaderSize: HEADER_BYTES,
      requireHostHeader: false,
      headersTimeout: this.#headerMs,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Another protocol than WebSocket is an offer that may be ignored (RFC 9110 7.8).
      shouldUpgradeCallback: req => req.headers.upgrade?.toLowerCase() === 'websocket',
    });
    server.maxHeadersCount = 0;
    server.timeout = SILENT_MS;
    server.on('request', (req, res) => {
      if (this.#leaving) res.shouldKeepAlive = false;
      void door.request(req, res);
    });
    server.on('upgrade', (req, socket, head) => void door.upgrade(req, socket, head));
    server.on('connect', (req, socket) => {
      door.told(TUNNEL, door.correlationOf(req), req);
      refuseSocket(socket, TUNNEL, door.correlationOf(req));
    });
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
      const [refusal, correlationId] = [unreadable(error), `proxy-${this.#ctx.platform.newId()}`];
      if (socket.writable) door.told(refusal, correlationId);
      refuseSocket(socket, refusal, correlationId);
    });
    return server;
  }

  #makeHttp2(): Http2Server {
    const { door } = this.#parts;
    const server = createHttp2({
      settings: { maxConcurrentStreams: STREAMS, maxHeaderListSize: HEADER_BYTES },
      maxHeaderListPairs: HEADER_PAIRS,
    });
    server.on('session', session => this.#bound(session));
    server.on('request', (req, res) => {
      req.stream.setTimeout(SILENT_MS, () => req.stream.close(8));
      void door.request(req as never, res as never);
    });
    server.on('connect', ((req: IncomingMessage, res: ServerResponse) => {
      door.told(TUNNEL, door.correlationOf(req), req);
      refuse(res, TUNNEL, door.correlationOf(req));
    }) as never);
    server.on('sessionError', error => this.#ctx.log.debug({ err: error }, 'an HTTP/2 session ended'));
    return server;
  }

  /** Node has no deadlines for HTTP/2: one to the first stream, and one of silence (facts, section 3). */
  #bound(session: ServerHttp2Session): void {
    const first = setTimeout(() => session.destroy(), this.#headerMs).unref();
    this.#sessions.add(session);
    session
      .once('stream', () => clearTimeout(first))
      .once('close', () => {
        clearTimeout(first);
        this.#sessions.delete(session);
      });
    session.setTimeout(SILENT_MS, () => session.destroy());
  }

  #reported: Readonly<Record<string, number>> = {};

  /** One line for all bounds that were hit since the last one. */
  #report(): void {
    const { figures } = this;
    const hit = Object.entries(figures).filter(([name, value]) => name.endsWith('_total') && value > (this.#reported[name] ?? 0));
    this.#reported = figures;
    if (hit.length > 0) this.#ctx.log.warn(Object.fromEntries(hit), 'bounds of the edge were hit');
  }
}

const fromOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** Bytes that are no request, or not in time. */
function unreadable({ code }: NodeJS.ErrnoException): Refusal {
  if (code === 'HPE_HEADER_OVERFLOW') return { status: 431, code: 'headers_too_large', title: 'The request header is too large' };
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return { status: 413, code: 'body_too_large', title: 'The chunk extensions are too large' };
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return { status: 408, code: 'request_timeout', title: 'The request did not come in time' };
  return { status: 400, code: 'malformed', title: 'The request is malformed' };
}
