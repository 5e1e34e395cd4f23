import { createServer, type Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { isProblem } from '@platform/sdk';
import type { Ctx } from './context.ts';
import type { EdgeCertificates } from './edge-certificates.ts';
import type { HostMappings, Mapping } from './host-mappings.ts';
import { backendHeaders, correlationOf, refusalOf } from './request-headers.ts';

const HEADER_BYTES = 65_536;
const HEADER_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 65_000;

/** TLS on the edge port: terminated, resolved by host, given the tenant's headers, forwarded over mutual TLS (doc3, ingress). */
export class EdgeListener implements AsyncDisposable {
  readonly #ctx: Ctx;
  readonly #mappings: HostMappings;
  readonly #server: Server;
  #active = 0;

  constructor(ctx: Ctx, mappings: HostMappings, certificates: EdgeCertificates) {
    this.#ctx = ctx;
    this.#mappings = mappings;
    this.#server = createServer({
      maxHeaderSize: HEADER_BYTES,
      requireHostHeader: false,
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
    this.#server.headersTimeout = HEADER_TIMEOUT_MS;
    this.#server.keepAliveTimeout = KEEP_ALIVE_MS;
    this.#server.on('request', (req, res) => void this.#request(req, res));
    this.#server.on('upgrade', (req, socket, head) => void this.#upgrade(req, socket, head));
    this.#server.on('tlsClientError', error => ctx.log.debug({ err: error }, 'edge handshake failed'));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
      const status = error.code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request';
      if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      else socket.destroy();
    });
  }

  get active(): number {
    return this.#active;
  }

  async listen(port: number, address: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', error => reject(new Error(`the edge port ${port} cannot be opened: ${error.message}. Set PLATFORM_PROXY_HTTPS_PORT to a free one.`)));
      this.#server.listen(port, address, () => resolve());
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>(resolve => {
      this.#server.close(() => resolve());
    });
    this.#server.closeAllConnections();
    await closed;
  }

  async #request(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const correlationId = correlationOf(req, () => this.#ctx.platform.newId());
    this.#active += 1;
    res.once('close', () => {
      this.#active -= 1;
    });
    try {
      const mapping = await this.#admit(req);
      if ('status' in mapping && 'code' in mapping) return refuse(res, mapping, correlationId);
      const headers = backendHeaders(req, mapping as Mapping, { correlationId, ip: clientIp(req) });
      await this.#ctx.backends.forward((mapping as Mapping).service, { req, res, headers });
    } catch (error) {
      const unresolved = isProblem(error) && error.code === 'backend_unresolved';
      const problem = unresolved
        ? { status: 503, code: 'no_backend', title: 'No backend is active', retryAfter: 3 }
        : isProblem(error)
          ? { status: error.status, code: error.code, title: error.title }
          : { status: 502, code: 'backend_unreachable', title: 'The backend did not answer' };
      if (!isProblem(error) && !res.destroyed) this.#ctx.log.warn({ err: error }, 'forwarding failed');
      refuse(res, problem, correlationId);
    }
  }

  async #upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const correlationId = correlationOf(req, () => this.#ctx.platform.newId());
    try {
      const mapping = await this.#admit(req);
      if ('code' in mapping) return void socket.end(`HTTP/1.1 ${mapping.status} Refused\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      const headers = backendHeaders(req, mapping as Mapping, { correlationId, ip: clientIp(req), upgrade: true });
      await this.#ctx.backends.upgrade((mapping as Mapping).service, { req, socket, head, headers });
    } catch (error) {
      this.#ctx.log.debug({ err: error }, 'upgrade failed');
      if (socket.writable) socket.end('HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
    }
  }

  async #admit(req: IncomingMessage): Promise<Mapping | { status: number; code: string; title: string }> {
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
}

const clientIp = (req: IncomingMessage) => (req.socket.remoteAddress ?? '').replace(/^::ffff:/, '');

function refuse(res: ServerResponse, problem: { status: number; code: string; title: string; retryAfter?: number }, correlationId: string): void {
  if (res.headersSent) return void res.destroy();
  const close = problem.status === 400 || problem.status === 431;
  const body = JSON.stringify({
    type: `urn:platform:problem:proxy:${problem.code}`,
    title: problem.title,
    status: problem.status,
    code: problem.code,
    correlation_id: correlationId,
    ...(problem.retryAfter ? { retry_after: problem.retryAfter } : {}),
  });
  res.writeHead(problem.status, {
    'content-type': 'application/problem+json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-platform-correlation-id': correlationId,
    'cache-control': 'no-store',
    ...(problem.retryAfter ? { 'retry-after': String(problem.retryAfter) } : {}),
    ...(close ? { connection: 'close' } : {}),
  });
  res.end(body);
}
