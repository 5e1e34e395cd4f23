import type { IncomingMessage } from 'node:http';
import { connect as tlsConnect, type TLSSocket } from 'node:tls';
import { type Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Backends, FairShare, type Forwarded, isHopByHop, isProblem, type Logger } from '@platform/sdk';
import { buildConnector, Client, type Dispatcher } from 'undici';
import { kernelProblem } from '../base/kernel-problem.ts';
import type { RevokedCertificates } from '../identity/certificates/revoked-certificates.ts';
import type { Workload } from '../identity/workload.ts';
import { backendHeaders, isUnsendable, refuseUnsendable } from './backend-request.ts';
import { CONNECT_MS, dial, PROBE_MS } from './dial.ts';
import { type BackendLimits, ConnectionPool, DEFAULT_LIMITS, type Lease } from './connection-pool.ts';
import type { Directory, Instance } from './directory.ts';
import { Forwarding } from './forwarding.ts';
import { sendTrailed } from './trailed-request.ts';

const RESPONSE_MS = 60_000;
const KEEP_ALIVE_MS = 30_000;
/** Callers inside the platform are bounded together, not one by one. */
const INSIDE = ' (workload)';
const MAX_POOLS = 256;
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** A connection, and what is to be written on it. */
interface Taken {
  readonly pool: ConnectionPool;
  readonly lease: Lease;
  readonly options: Dispatcher.RequestOptions;
}
type Address = { readonly ip: string; readonly port: number };

/** A request to a service, whoever wrote its answer down. */
export interface BackendRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body?: Dispatcher.DispatchOptions['body'];
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly hostname?: string | undefined;
  /** The answer may be held back, or lasts: a long poll, a stream. A streamed body says so by itself. */
  readonly long?: boolean | undefined;
  /** The address outside that it comes from; the calling workload where there is none. */
  readonly party?: string | undefined;
  /** This very instance, whatever the directory says. */
  readonly at?: Address | undefined;
}
export interface BackendPoolsOptions {
  readonly log: Logger;
  readonly limits?: Partial<BackendLimits> | undefined;
  /** Backends that show one of these are not talked to. */
  readonly revoked?: RevokedCertificates | undefined;
}

/** Keep-alive connections over mutual TLS, pooled per caller's workload, target service and address. */
export class BackendPools implements AsyncDisposable {
  readonly #directory: Directory;
  readonly #hostOf: (service: string) => string;
  readonly #log: Logger;
  readonly #limits: BackendLimits;
  readonly #lasting: FairShare;
  readonly #pools = new Map<string, ConnectionPool>();
  readonly #watched = new WeakSet<Workload>();
  readonly #revoked: RevokedCertificates | undefined;
  readonly #hearing: Disposable | undefined;
  /** What pools that are gone had counted. */
  #past = { lost: 0, refused: 0 };

  constructor(directory: Directory, hostOf: (service: string) => string, { log, limits = {}, revoked }: BackendPoolsOptions) {
    this.#directory = directory;
    this.#hostOf = hostOf;
    this.#log = log;
    this.#revoked = revoked;
    // Which connections are to whom is known at their start alone: all are made anew, those in use when they are free.
    this.#hearing = revoked?.onRevoked(() => [...this.#pools.keys()].forEach(key => this.#drop(key)));
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
    this.#lasting = new FairShare({
      total: this.#limits.streams,
      perParty: party => (party.endsWith(INSIDE) ? this.#limits.streams : this.#limits.streamsPerAddress),
      atBound: 'refuse',
    });
  }

  /** What an operator may see of the connections of this process. */
  get figures(): Readonly<Record<string, number>> {
    const all = [...this.#pools.values()].map(({ figures }) => figures);
    const sum = (name: keyof (typeof all)[number]) => all.reduce((total, figures) => total + figures[name], 0);
    const { ended } = this.#lasting.outcomes;
    return {
      backend_requests: sum('ordinary'),
      backend_streams: this.#lasting.size,
      backend_waiting: sum('waiting'),
      backend_idle: sum('idle'),
      backend_lost_total: sum('lost') + this.#past.lost,
      backend_refused_total: sum('refused') + this.#past.refused,
      backend_ended_total: ended,
    };
  }

  /** A request on behalf of `workload`. The response is undici's, its body unread. */
  request(workload: Workload, service: string, init: BackendRequest): Promise<Dispatcher.ResponseData> {
    return this.#send(workload, service, init, async ({ pool, lease, options }) => {
      let [whole, answered] = [false, false];
      const free = () => whole && answered && pool.takeBack(lease, 'sound');
      // The connection is free when the answer has come whole, even if nobody reads it.
      const drained = () => {
        whole = true;
        free();
      };
      lease.client.once('drain', drained);
      const response = await lease.client.request(options).catch(error => {
        lease.client.off('drain', drained);
        throw error;
      });
      answered = true;
      free();
      response.body.once('close', () => {
        // A connection that was never full tells of no room again: the next request must not find this one's listener.
        lease.client.off('drain', drained);
        pool.takeBack(lease, !response.body.errored ? 'sound' : init.signal?.aborted ? 'given up' : 'lost', response.body.errored);
      });
      return response;
    });
  }

  /** The face plugins with the `backends` capability see. */
  facade(workloadOf: (name: string | undefined) => Workload): Backends {
    return {
      fetch: async (service, path, { method, headers, body, signal, hostname, timeoutMs, longPoll, party, as, at }) => {
        const sent =
          body instanceof ReadableStream
            ? Readable.fromWeb(body as never)
            : typeof body === 'string' || body instanceof Uint8Array
              ? body
              : body == null
                ? null
                : Buffer.from(await new Response(body).arrayBuffer());
        const long = longPoll === true || headers['accept'] === 'text/event-stream';
        return toResponse(
          await this.request(workloadOf(as), service, { method, path, headers, body: sent, signal, hostname, timeoutMs, long, party, at }),
        );
      },
      addresses: async service =>
        (await this.#directory.instances(service)).map(instance => ({
          ...seen(instance),
          ...this.#of(service, instance),
          suspect_until: this.#directory.suspectUntil(instance),
        })),
      dial: service => dial(this.#directory, service),
      forward: (service, exchange) => this.#forward(workloadOf(undefined), service, exchange),
      upgrade: (service, exchange) => this.#upgrade(workloadOf(undefined), service, exchange),
    };
  }

  async #forward(workload: Workload, service: string, { req, res, headers, body, party, trailers }: Forwarded): Promise<void> {
    if (trailers && body)
      return this.#forwardTrailed(workload, service, { req, res, headers, body, party: party ?? workload.name + INSIDE, trailers });
    const gone = new AbortController();
    res.once('close', () => gone.abort(new Error('the client went away')));
    const init = {
      method: req.method ?? 'GET',
      path: req.url ?? '/',
      headers,
      body: body ?? null,
      signal: gone.signal,
      long: req.headers.accept === 'text/event-stream',
      party,
    };
    await this.#send(workload, service, init, async ({ pool, lease, options }) => {
      const forwarding = new Forwarding(req, res);
      lease.client.dispatch({ ...options, signal: undefined } as Dispatcher.DispatchOptions, forwarding);
      await forwarding.answered;
      void forwarding.ended.then(
        () => pool.takeBack(lease, 'sound'),
        cause => pool.takeBack(lease, gone.signal.aborted ? 'given up' : 'lost', cause),
      );
    });
  }

  async #forwardTrailed(
    workload: Workload,
    service: string,
    {
      req,
      res,
      headers,
      body,
      party,
      trailers,
    }: Required<Pick<Forwarded, 'req' | 'res' | 'headers' | 'party'>> & {
      body: Uint8Array | Readable;
      trailers: NonNullable<Forwarded['trailers']>;
    },
  ): Promise<void> {
    const [method, path] = [req.method ?? 'GET', req.url ?? '/'];
    refuseUnsendable({ method, path });
    const address = await this.#pick(service);
    const place = this.#lasting.admit(party, () => res.destroy());
    if (!place) throw kernelProblem('too_many_streams', { headers: { 'retry-after': '5' } });
    const forwarding = new Forwarding(req, res);
    try {
      const upstream = await this.#connect(workload, service, address);
      const { trailer } = headers;
      const said = backendHeaders(headers, { host: this.#hostOf(service), 'x-platform-service': service, ...(trailer ? { trailer } : {}) });
      sendTrailed(upstream, { method, path, headers: said, body, trailers, timeoutMs: RESPONSE_MS }, forwarding);
      void forwarding.ended.catch(() => undefined).finally(() => (upstream.destroy(), place[Symbol.dispose]()));
      await forwarding.answered;
      this.#directory.trust(address);
    } catch (cause) {
      place[Symbol.dispose]();
      if (res.destroyed || res.closed) throw cause;
      this.#directory.suspect(address);
      if ((cause as { code?: string }).code === 'UND_ERR_HEADERS_TIMEOUT')
        throw kernelProblem('backend_timeout', { detail: `${service} did not answer in time.`, cause });
      throw isProblem(cause) ? cause : kernelProblem('backend_unreachable', { detail: `${service} could not be reached.`, cause });
    }
  }

  /**
   * Takes a connection, sends, and gives up, tries elsewhere or says what went wrong. `send` takes the connection back when the answer has
   * ended.
   */
  async #send<T>(workload: Workload, service: string, init: BackendRequest, send: (taken: Taken) => Promise<T>): Promise<T> {
    refuseUnsendable(init);
    const streams = init.body instanceof Readable;
    const replayable = !streams;
    const own = {
      host: this.#hostOf(service),
      'x-platform-service': service,
      ...(init.hostname ? { 'x-platform-hostname': init.hostname } : {}),
    };
    const options: Dispatcher.RequestOptions = {
      method: init.method as Dispatcher.HttpMethod,
      path: init.path,
      headers: backendHeaders(init.headers, own),
      body: init.body ?? null,
      headersTimeout: init.timeoutMs ?? RESPONSE_MS,
      bodyTimeout: 0,
      ...(init.signal ? { signal: init.signal } : {}),
    };
    for (let attempt = 0; ; attempt++) {
      const address = init.at ?? (await this.#pick(service));
      const pool = this.#pool(workload, service, address);
      const lease = await pool.take({
        long: streams || init.long === true,
        party: init.party ?? workload.name + INSIDE,
        fresh: attempt > 0,
        signal: init.signal,
      });
      try {
        const answer = await send({ pool, lease, options });
        this.#directory.trust(address);
        return answer;
      } catch (cause) {
        const given = init.signal?.aborted === true;
        pool.takeBack(lease, isUnsendable(cause) ? 'sound' : given ? 'given up' : 'lost', cause);
        if (given) throw cause;
        if (lease.ended)
          throw kernelProblem('no_backend', {
            detail: 'The connection was needed for somebody else. Try again in a moment.',
            headers: { 'retry-after': '3' },
          });
        if (isUnsendable(cause)) throw kernelProblem('malformed', { detail: 'The request cannot be forwarded as it was written.', cause });
        this.#directory.suspect(address);
        const code = (cause as { code?: string }).code;
        if (code === 'UND_ERR_HEADERS_TIMEOUT')
          throw kernelProblem('backend_timeout', { detail: `${service} did not answer in time.`, cause });
        // A second try only before a byte of the answer, and only where running twice is harmless (hardening H-27).
        const unsent = code === 'ECONNREFUSED' || code === 'UND_ERR_CONNECT_TIMEOUT';
        if (attempt === 0 && replayable && (IDEMPOTENT.has(init.method) || unsent || init.headers['idempotency-key'])) continue;
        throw kernelProblem('backend_unreachable', { detail: `${service} could not be reached.`, cause });
      }
    }
  }

  async #upgrade(
    workload: Workload,
    service: string,
    {
      req,
      socket,
      head,
      headers,
      party,
    }: { req: IncomingMessage; socket: Duplex; head: Buffer; headers: Record<string, string>; party?: string },
  ): Promise<void> {
    refuseUnsendable({ method: req.method ?? 'GET', path: req.url ?? '/' });
    const address = await this.#pick(service);
    using place = this.#lasting.admit(party ?? workload.name + INSIDE, () => socket.destroy());
    if (!place) throw kernelProblem('too_many_streams', { headers: { 'retry-after': '5' } });
    const upstream = await this.#connect(workload, service, address).catch(cause => {
      this.#directory.suspect(address);
      throw cause;
    });
    const said = backendHeaders(headers, {
      host: headers['host'] ?? this.#hostOf(service),
      connection: 'Upgrade',
      upgrade: 'websocket',
      'x-platform-service': service,
    });
    const lines = Object.entries(said).map(([name, value]) => `${name}: ${value}`);
    upstream.write(`${req.method} ${req.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    if (head.length > 0) upstream.write(head);
    await Promise.allSettled([pipeline(upstream, socket), pipeline(socket, upstream)]);
  }

  /** What goes over connections to one instance. */
  #of(service: string, { ip, port }: Address): { in_flight: number; pool_idle: number } {
    const own = [...this.#pools].filter(([key]) => key.endsWith(` ${service} ${ip}:${port}`)).map(([, { figures }]) => figures);
    return {
      in_flight: own.reduce((sum, { ordinary, lasting }) => sum + ordinary + lasting, 0),
      pool_idle: own.reduce((sum, { idle }) => sum + idle, 0),
    };
  }

  #connect(workload: Workload, service: string, { ip, port }: Address): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const socket = tlsConnect(
        { host: ip, port, servername: this.#hostOf(service), ...workload.clientTls(), ...this.#checks(), timeout: CONNECT_MS },
        () => {
          socket.setTimeout(0);
          socket.removeAllListeners('timeout');
          socket.setKeepAlive(true, PROBE_MS);
          resolve(socket);
        },
      );
      socket.once('timeout', () => socket.destroy(new Error('connect timeout')));
      socket.once('error', cause => reject(kernelProblem('backend_unreachable', { detail: `${service} could not be reached.`, cause })));
    });
  }

  #checks() {
    return this.#revoked ? { checkServerIdentity: this.#revoked.checkServer } : {};
  }

  async #pick(service: string): Promise<Address> {
    const address = await this.#directory.pick(service);
    if (!address)
      throw kernelProblem('backend_unresolved', { detail: `No instance of ${service} is active.`, headers: { 'retry-after': '3' } });
    return address;
  }

  #pool(workload: Workload, service: string, { ip, port }: Address): ConnectionPool {
    const key = `${workload.name} ${service} ${ip}:${port}`;
    let pool = this.#pools.get(key);
    if (!pool) {
      const connect = buildConnector({
        ...workload.clientTls(),
        ...this.#checks(),
        servername: this.#hostOf(service),
        timeout: CONNECT_MS,
      });
      pool = new ConnectionPool({
        name: key,
        connect: () => new Client(`https://${ip}:${port}`, { connect, pipelining: 1, keepAliveTimeout: KEEP_ALIVE_MS }),
        limits: this.#limits,
        lasting: this.#lasting,
        log: this.#log,
      });
      this.#pools.set(key, pool);
      if (this.#pools.size > MAX_POOLS) this.#drop(this.#pools.keys().next().value as string);
    }
    if (!this.#watched.has(workload)) {
      this.#watched.add(workload);
      // A renewed certificate is shown on new connections; those in use finish on the old one.
      workload.onRenewed(
        kind =>
          kind === 'client' && [...this.#pools.keys()].filter(key => key.startsWith(`${workload.name} `)).forEach(key => this.#drop(key)),
      );
    }
    return pool;
  }

  #drop(key: string): void {
    const pool = this.#pools.get(key);
    this.#pools.delete(key);
    if (!pool) return;
    const { lost, refused } = pool.figures;
    this.#past = { lost: this.#past.lost + lost, refused: this.#past.refused + refused };
    pool.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#hearing?.[Symbol.dispose]();
    await Promise.all([...this.#pools.values()].map(pool => pool.destroy()));
    this.#pools.clear();
  }
}

const seen = ({ ip, port, status, last_health_at }: Instance) => ({ ip, port, status, last_health_at });

function toResponse(response: Dispatcher.ResponseData): Response {
  const headers = new Headers();
  const connection = String(response.headers['connection'] ?? '');
  for (const [name, value] of Object.entries(response.headers)) {
    if (value === undefined || isHopByHop(name, connection)) continue;
    for (const one of Array.isArray(value) ? value : [value]) headers.append(name, one);
  }
  const empty = response.statusCode === 204 || response.statusCode === 304 || response.statusCode < 200;
  if (empty) void response.body.dump();
  return new Response(empty ? null : (Readable.toWeb(response.body) as ReadableStream), { status: response.statusCode, headers });
}
