import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect as tlsConnect, type TLSSocket } from 'node:tls';
import { Readable, type Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Backends } from '@platform/sdk';
import { type Dispatcher, Pool } from 'undici';
import { kernelProblem } from '../base/kernel-problem.ts';
import type { Workload } from '../identity/workload.ts';
import type { Directory } from './directory.ts';

const CONNECT_MS = 2_000;
const RESPONSE_MS = 60_000;
const CONNECTIONS = 16;
const MAX_POOLS = 256;
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer', 'transfer-encoding', 'upgrade']);

type Address = { readonly ip: string; readonly port: number };

/** Keep-alive pools over mutual TLS, one per caller's workload, target service and address. */
export class BackendPools implements AsyncDisposable {
  readonly #directory: Directory;
  readonly #hostOf: (service: string) => string;
  readonly #pools = new Map<string, Pool>();
  readonly #watched = new WeakSet<Workload>();

  constructor(directory: Directory, hostOf: (service: string) => string) {
    this.#directory = directory;
    this.#hostOf = hostOf;
  }

  /** A request on behalf of `workload`. The response is undici's, its body unread. */
  async request(
    workload: Workload,
    service: string,
    init: {
      method: string;
      path: string;
      headers: Record<string, string>;
      body?: Dispatcher.DispatchOptions['body'];
      signal?: AbortSignal | undefined;
      timeoutMs?: number | undefined;
      hostname?: string | undefined;
    },
  ): Promise<Dispatcher.ResponseData> {
    const replayable = init.body === undefined || init.body === null || typeof init.body === 'string' || init.body instanceof Uint8Array;
    for (let attempt = 0; ; attempt++) {
      const address = await this.#pick(service);
      try {
        const response = await this.#pool(workload, service, address).request({
          method: init.method as Dispatcher.HttpMethod,
          path: init.path,
          headers: { ...init.headers, host: this.#hostOf(service), 'x-platform-service': service, ...(init.hostname ? { 'x-platform-hostname': init.hostname } : {}) },
          body: init.body ?? null,
          headersTimeout: init.timeoutMs ?? RESPONSE_MS,
          bodyTimeout: 0,
          ...(init.signal ? { signal: init.signal } : {}),
        });
        this.#directory.trust(address);
        return response;
      } catch (cause) {
        if (init.signal?.aborted) throw cause;
        this.#directory.suspect(address);
        const code = (cause as { code?: string }).code;
        if (code === 'UND_ERR_HEADERS_TIMEOUT') throw kernelProblem('backend_timeout', { detail: `${service} did not answer in time.`, cause });
        // A second try only before a byte of the answer, and only where running twice is harmless (hardening H-27).
        const unsent = code === 'ECONNREFUSED' || code === 'UND_ERR_CONNECT_TIMEOUT';
        if (attempt === 0 && replayable && (IDEMPOTENT.has(init.method) || unsent || init.headers['idempotency-key'])) continue;
        throw kernelProblem('backend_unreachable', { detail: `${service} could not be reached.`, cause });
      }
    }
  }

  /** The face plugins with the `backends` capability see. */
  facade(workloadOf: (name: string | undefined) => Workload): Backends {
    return {
      fetch: async (service, path, { method, headers, body, signal, hostname, timeoutMs, as }) => {
        const sent =
          body instanceof ReadableStream
            ? Readable.fromWeb(body as never)
            : typeof body === 'string' || body instanceof Uint8Array
              ? body
              : body == null
                ? null
                : Buffer.from(await new Response(body).arrayBuffer());
        const response = await this.request(workloadOf(as), service, { method, path, headers, body: sent, signal, hostname, timeoutMs });
        return toResponse(response);
      },
      addresses: async service => (await this.#directory.instances(service)).map(({ ip, port }) => ({ ip, port })),
      forward: (service, exchange) => this.#forward(workloadOf(undefined), service, exchange),
      upgrade: (service, exchange) => this.#upgrade(workloadOf(undefined), service, exchange),
    };
  }

  async #forward(workload: Workload, service: string, { req, res, headers }: { req: IncomingMessage; res: ServerResponse; headers: Record<string, string> }): Promise<void> {
    const closed = new AbortController();
    res.once('close', () => closed.abort());
    const bodied = req.headers['content-length'] !== undefined || req.headers['transfer-encoding'] !== undefined;
    const response = await this.request(workload, service, { method: req.method ?? 'GET', path: req.url ?? '/', headers, body: bodied ? req : null, signal: closed.signal });
    for (const [name, value] of Object.entries(response.headers)) if (value !== undefined && !HOP_BY_HOP.has(name)) res.setHeader(name, value);
    res.writeHead(response.statusCode);
    await pipeline(response.body, res).catch(() => res.destroy());
  }

  async #upgrade(workload: Workload, service: string, { req, socket, head, headers }: { req: IncomingMessage; socket: Duplex; head: Buffer; headers: Record<string, string> }): Promise<void> {
    const address = await this.#pick(service);
    const upstream = await this.#connect(workload, service, address);
    const lines = Object.entries({ ...headers, connection: 'Upgrade', upgrade: 'websocket', 'x-platform-service': service }).map(([name, value]) => `${name}: ${value}`);
    upstream.write(`${req.method} ${req.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    if (head.length > 0) upstream.write(head);
    await Promise.allSettled([pipeline(upstream, socket), pipeline(socket, upstream)]);
  }

  #connect(workload: Workload, service: string, { ip, port }: Address): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const socket = tlsConnect({ host: ip, port, servername: this.#hostOf(service), ...workload.clientTls(), timeout: CONNECT_MS }, () => {
        socket.setTimeout(0);
        resolve(socket);
      });
      socket.once('timeout', () => socket.destroy(new Error('connect timeout')));
      socket.once('error', cause => reject(kernelProblem('backend_unreachable', { cause })));
    });
  }

  async #pick(service: string): Promise<Address> {
    const address = await this.#directory.pick(service);
    if (!address) throw kernelProblem('backend_unresolved', { detail: `No instance of ${service} is active.`, headers: { 'retry-after': '3' } });
    return address;
  }

  #pool(workload: Workload, service: string, { ip, port }: Address): Pool {
    const key = `${workload.name} ${service} ${ip}:${port}`;
    let pool = this.#pools.get(key);
    if (!pool) {
      pool = new Pool(`https://${ip}:${port}`, { connections: CONNECTIONS, keepAliveTimeout: 30_000, connect: { ...workload.clientTls(), servername: this.#hostOf(service), timeout: CONNECT_MS } });
      this.#pools.set(key, pool);
      if (this.#pools.size > MAX_POOLS) this.#drop(this.#pools.keys().next().value as string);
    }
    if (!this.#watched.has(workload)) {
      this.#watched.add(workload);
      // A renewed certificate is shown on new connections; those in use finish on the old one.
      workload.onRenewed(kind => kind === 'client' && [...this.#pools.keys()].filter(key => key.startsWith(`${workload.name} `)).forEach(key => this.#drop(key)));
    }
    return pool;
  }

  #drop(key: string): void {
    const pool = this.#pools.get(key);
    this.#pools.delete(key);
    void pool?.close().catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#pools.values()].map(pool => pool.destroy()));
    this.#pools.clear();
  }
}

function toResponse(response: Dispatcher.ResponseData): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(response.headers)) {
    if (value === undefined || HOP_BY_HOP.has(name)) continue;
    for (const one of Array.isArray(value) ? value : [value]) headers.append(name, one);
  }
  const empty = response.statusCode === 204 || response.statusCode === 304 || response.statusCode < 200;
  if (empty) void response.body.dump();
  return new Response(empty ? null : (Readable.toWeb(response.body) as ReadableStream), { status: response.statusCode, headers });
}
