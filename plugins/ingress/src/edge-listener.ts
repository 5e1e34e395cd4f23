import { Server as NetServer } from 'node:net';
import { createServer, type Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { isProblem } from '@platform/sdk';
import { BodyIntake, BodyRefused, ClientGone } from './body-intake.ts';
import type { Ctx } from './context.ts';
import { EdgeBounds, partyOf } from './edge-bounds.ts';
import type { EdgeCertificates } from './edge-certificates.ts';
import type { HostMappings, Mapping } from './host-mappings.ts';
import { isRefusal, type Refusal, refuse, refuseSocket } from './refusal.ts';
import { backendHeaders, correlationOf, refusalOf } from './request-headers.ts';
import { targetOf } from './request-target.ts';

const HEADER_BYTES = 65_536;
const HEADER_TIMEOUT_MS = 10_000;
const CHECK_EVERY_MS = 1_000;
const KEEP_ALIVE_MS = 65_000;
/** A connection on which nothing moves for so long, in either direction, is over: a client that stopped reading. */
const SILENT_MS = 120_000;
const PROBE_MS = 60_000;
/** A leaving instance: answers say so for a while, then idle connections are left one more second, and everything has its end. */
const [TOLD_MS, IDLE_AFTER_MS, SWEEP_MS, LEAVE_MS] = [300, 1_000, 100, 8_000];
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';
const TUNNEL: Refusal = { status: 501, code: 'not_implemented', title: 'This server opens no tunnels' };

/** TLS on the edge port: terminated, resolved by host, given the tenant's headers, forwarded over mutual TLS (doc3, ingress). */
export class EdgeListener implements AsyncDisposable {
  readonly #ctx: Ctx;
  readonly #mappings: HostMappings;
  readonly #server: Server;
  readonly #bodies: BodyIntake;
  readonly #bounds: EdgeBounds;
  #active = 0;
  #shared = false;
  #leaving = false;

  constructor(ctx: Ctx, mappings: HostMappings, certificates: EdgeCertificates) {
    this.#ctx = ctx;
    this.#mappings = mappings;
    this.#bodies = new BodyIntake(ctx);
    this.#bounds = new EdgeBounds(ctx);
    this.#server = createServer({
      maxHeaderSize: HEADER_BYTES,
      requireHostHeader: false,
      headersTimeout: HEADER_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      handshakeTimeout: HEADER_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_MS,
      SNICallback: (name, done) => {
        const host = name.toLowerCase();
        mappings
          .find(host)
          .then(mapping => (mapping ? certificates.contextFor(host) : undefined))
          .then(
            context => (context ? done(null, context) : done(new Error('unrecognized_name'))),
            error => done(error as Error),
          );
      },
    });
    this.#server.maxHeadersCount = 0;
    this.#server.timeout = SILENT_MS;
    this.#server.on('connection', socket => this.#bounds.admit(socket));
    this.#server.on('request', (req, res) => void this.#request(req, res));
    this.#server.on('upgrade', (req, socket, head) => void this.#upgrade(req, socket, head));
    this.#server.on('connect', (req, socket) => refuseSocket(socket, TUNNEL, this.#correlationOf(req)));
    this.#server.on('tlsClientError', error => ctx.log.debug({ err: error }, 'edge handshake failed'));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => refuseSocket(socket, unreadable(error), `proxy-${ctx.platform.newId()}`));
    ctx.own(ctx.every(10_000, () => this.#report()));
  }

  /** Gauges and counters of the edge. */
  get figures(): Readonly<Record<string, number>> {
    return { edge_requests: this.#active, ...prefixed(this.#bounds.figures), ...prefixed(this.#bodies.figures) };
  }

  async listen(port: number, address: string): Promise<void> {
    try {
      this.#shared = await this.#ctx.listen('edge', this.#server, { port, address });
    } catch (error) {
      throw new Error(`the edge port ${port} cannot be opened: ${(error as Error).message}. Set PLATFORM_PROXY_HTTPS_PORT to a free one.`, { cause: error });
    }
  }

  /**
   * Leaves a shared socket to the next instance and refuses nobody: who asks is told to come again by another connection, then nothing new is
   * accepted, then connections that are idle go, and the last one ends it. `http.Server.close` would cut idle ones while a request is on its way.
   */
  async leave(): Promise<void> {
    if (!this.#shared) return;
    this.#leaving = true;
    await delay(TOLD_MS);
    const gone = new Promise<void>(resolve => NetServer.prototype.close.call(this.#server, () => resolve()));
    await delay(IDLE_AFTER_MS);
    const sweep = setInterval(() => this.#server.closeIdleConnections(), SWEEP_MS);
    await Promise.race([gone, delay(LEAVE_MS, undefined, { ref: false })]);
    clearInterval(sweep);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>(resolve => {
      if (this.#server.listening) this.#server.close(() => resolve());
      else resolve();
    });
    this.#bounds[Symbol.dispose]();
    await closed;
  }

  async #request(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const correlationId = this.#correlationOf(req);
    this.#active += 1;
    if (this.#leaving) res.shouldKeepAlive = false;
    res.once('close', () => {
      this.#active -= 1;
    });
    try {
      const refusal = await this.#forward(req, res, correlationId);
      if (refusal) refuse(res, refusal, correlationId);
    } catch (error) {
      if (res.destroyed || error instanceof ClientGone) return void res.destroy();
      refuse(res, this.#named(error), correlationId);
    }
  }

  async #forward(req: IncomingMessage, res: ServerResponse, correlationId: string): Promise<Refusal | undefined> {
    const mapping = await this.#admit(req);
    if (isRefusal(mapping)) return mapping;
    const target = targetOf(req);
    if (target === 'server') return void res.writeHead(204, { allow: METHODS, 'x-platform-correlation-id': correlationId }).end();
    if (isRefusal(target)) return target;
    req.url = target.path;
    const party = partyOf(req.socket.remoteAddress);
    const body = await this.#bodies.take(req, party, refusal => {
      res.once('finish', () => req.destroy());
      refuse(res, refusal, correlationId);
    });
    const headers = backendHeaders(req, mapping, { correlationId, ip: clientIp(req) });
    // What was read whole has a length, however it came.
    if (body instanceof Uint8Array) headers['content-length'] = String(body.byteLength);
    await this.#ctx.backends.forward(mapping.service, { req, res, headers, body, party });
    return undefined;
  }

  async #upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const correlationId = this.#correlationOf(req);
    (req.socket as TLSSocket).setTimeout(0);
    socket.on('error', () => socket.destroy());
    try {
      const mapping = await this.#admit(req);
      if (isRefusal(mapping)) return refuseSocket(socket, mapping, correlationId);
      const target = targetOf(req);
      if (target === 'server') return refuseSocket(socket, { status: 400, code: 'malformed', title: 'A path is needed to upgrade' }, correlationId);
      if (isRefusal(target)) return refuseSocket(socket, target, correlationId);
      req.url = target.path;
      const headers = backendHeaders(req, mapping, { correlationId, ip: clientIp(req), upgrade: true });
      await this.#ctx.backends.upgrade(mapping.service, { req, socket, head, headers, party: partyOf(req.socket.remoteAddress) });
    } catch (error) {
      refuseSocket(socket, this.#named(error), correlationId);
    }
  }

  async #admit(req: IncomingMessage): Promise<Mapping | Refusal> {
    const refusal = refusalOf(req);
    if (refusal) return refusal;
    const host = (req.headers.host ?? '').toLowerCase().replace(/:\d+$/, '').replace(/\.$/, '');
    const servername = (req.socket as TLSSocket).servername;
    const misdirected = { status: 421, code: 'misdirected', title: 'This listener does not serve that host' };
    // One connection, one name: a Host that disagrees with SNI would borrow the other tenant's certificate.
    if (typeof servername === 'string' && servername !== '' && servername.toLowerCase() !== host) return misdirected;
    const mapping = await this.#mappings.find(host);
    if (!mapping) return misdirected;
    if (mapping.status === 'suspended') return { status: 403, code: 'tenant_suspended', title: 'This environment is suspended' };
    return mapping;
  }

  /** The answer to what was thrown on the way. */
  #named(error: unknown): Refusal {
    if (error instanceof BodyRefused) return error.refusal;
    if (!isProblem(error)) {
      this.#ctx.log.warn({ err: error }, 'forwarding failed');
      return { status: 502, code: 'backend_unreachable', title: 'The backend did not answer' };
    }
    // What the kernel calls unresolved is no backend here (G-PROXY-04).
    if (error.code === 'backend_unresolved') return { status: 503, code: 'no_backend', title: 'No backend is active', headers: { 'retry-after': '3' } };
    return { status: error.status, code: error.code, title: error.title, detail: error.detail, headers: error.headers };
  }

  #correlationOf(req: IncomingMessage): string {
    return correlationOf(req, () => this.#ctx.platform.newId());
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

const clientIp = (req: IncomingMessage) => (req.socket.remoteAddress ?? '').replace(/^::ffff:/, '');
const prefixed = (figures: object) => Object.fromEntries(Object.entries(figures).map(([name, value]) => [`edge_${name}`, value as number]));

/** Bytes that are no request, or not in time. */
function unreadable({ code }: NodeJS.ErrnoException): Refusal {
  if (code === 'HPE_HEADER_OVERFLOW') return { status: 431, code: 'headers_too_large', title: 'The request header is too large' };
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return { status: 408, code: 'request_timeout', title: 'The request did not come in time' };
  return { status: 400, code: 'malformed', title: 'The request is malformed' };
}
