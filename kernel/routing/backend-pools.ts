import { Readable } from 'node:stream';
import { type Backends, FairShare, type Forwarded, isHopByHop, type Logger } from '@platform/sdk';
import type { Dispatcher } from 'undici';
import { kernelProblem } from '../base/kernel-problem.ts';
import type { RevokedCertificates } from '../identity/certificates/revoked-certificates.ts';
import type { Workload } from '../identity/workload.ts';
import { backendHeaders, isUnsendable, refuseUnsendable, RESPONSE_MS, unanswered } from './backend-request.ts';
import { type BackendLimits, type ConnectionPool, DEFAULT_LIMITS, type Lease } from './connections/connection-pool.ts';
import { ConnectionPools } from './connections/connection-pools.ts';
import { type Address, dial, nextAddress } from './connections/dial.ts';
import type { Directory, Instance } from './directory.ts';
import { Forwarding } from './forwarding.ts';
import { OwnConnections } from './connections/own-connections.ts';

/** Callers inside the platform are bounded together, not one by one. */
const INSIDE = ' (workload)';
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** Bodies above it are uploads, which ordinary requests do not wait for; one that streams is one as well. */
const UPLOAD = 65_536;

/** A connection, and what is to be written on it. */
interface Taken {
  readonly pool: ConnectionPool;
  readonly lease: Lease;
  readonly options: Dispatcher.RequestOptions;
}

/** A request to a service. */
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

/** Requests to services over mutual TLS: on pooled connections, or on one of their own where a pool cannot carry them. */
export class BackendPools implements AsyncDisposable {
  readonly #directory: Directory;
  readonly #hostOf: (service: string) => string;
  readonly #lasting: FairShare;
  readonly #pools: ConnectionPools;
  readonly #own: OwnConnections;

  constructor(directory: Directory, hostOf: (service: string) => string, { log, limits: given = {}, revoked }: BackendPoolsOptions) {
    const limits = { ...DEFAULT_LIMITS, ...given };
    this.#directory = directory;
    this.#hostOf = hostOf;
    const lasting = new FairShare({
      total: limits.streams,
      perParty: party => (party.endsWith(INSIDE) ? limits.streams : limits.streamsPerAddress),
      atBound: 'refuse',
    });
    this.#lasting = lasting;
    this.#pools = new ConnectionPools({ hostOf, limits, lasting, log, revoked });
    this.#own = new OwnConnections({ directory, hostOf, lasting, revoked });
  }

  /** What an operator may see of the connections of this process. */
  get figures(): Readonly<Record<string, number>> {
    const { ordinary, waiting, idle, lost, refused } = this.#pools.figures;
    return {
      backend_requests: ordinary,
      backend_streams: this.#lasting.size,
      backend_waiting: waiting,
      backend_idle: idle,
      backend_lost_total: lost,
      backend_refused_total: refused,
      backend_ended_total: this.#lasting.outcomes.ended,
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
        const long = longPoll === true || headers['accept'] === 'text/event-stream' || (sent instanceof Uint8Array && sent.length > UPLOAD);
        return toResponse(
          await this.request(workloadOf(as), service, { method, path, headers, body: sent, signal, hostname, timeoutMs, long, party, at }),
        );
      },
      addresses: async service =>
        (await this.#directory.instances(service)).map(instance => ({
          ...seen(instance),
          ...this.#load(service, instance),
          suspect_until: this.#directory.suspectUntil(instance),
        })),
      dial: (service, onread) => dial(this.#directory, service, onread),
      forward: (service, exchange) => this.#forward(workloadOf(undefined), service, exchange),
      upgrade: (service, { party, ...exchange }) => {
        const workload = workloadOf(undefined);
        return this.#own.upgrade(workload, service, { ...exchange, party: party ?? workload.name + INSIDE });
      },
    };
  }

  async #forward(workload: Workload, service: string, { req, res, headers, body, party, trailers }: Forwarded): Promise<void> {
    if (trailers && body)
      return this.#own.forward(workload, service, { req, res, headers, body, party: party ?? workload.name + INSIDE, trailers });
    const gone = new AbortController();
    let whole = false;
    // Of a request that was answered whole there is nothing to give up, and an error with its trace costs more than all else here.
    res.once('close', () => whole || gone.abort(new Error('the client went away')));
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
      await forwarding.answered.catch(cause => {
        // Somebody else answered: nothing is wrong with the backend.
        if (res.headersSent) gone.abort(cause);
        throw cause;
      });
      void forwarding.ended.then(
        () => {
          whole = true;
          pool.takeBack(lease, 'sound');
        },
        cause => pool.takeBack(lease, gone.signal.aborted ? 'given up' : 'lost', cause),
      );
    });
  }

  /**
   * Takes a connection, sends, and gives up, tries elsewhere or says what went wrong. `send` takes the connection back when the answer has
   * ended.
   */
  async #send<T>(workload: Workload, service: string, init: BackendRequest, send: (taken: Taken) => Promise<T>): Promise<T> {
    refuseUnsendable(init);
    const streams = init.body instanceof Readable;
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
      const address = init.at ?? (await nextAddress(this.#directory, service));
      const pool = this.#pools.of(workload, service, address);
      const wanted = {
        long: streams || init.long === true,
        party: init.party ?? workload.name + INSIDE,
        fresh: attempt > 0,
        signal: init.signal,
      };
      let lease: Lease;
      try {
        lease = await pool.take(wanted);
      } catch (cause) {
        // Who waited for an instance that turned out not to answer has sent nothing.
        if (attempt > 0 || init.at || this.#directory.suspectUntil(address) === undefined) throw cause;
        continue;
      }
      try {
        const answer = await send({ pool, lease, options });
        this.#directory.trust(address);
        return answer;
      } catch (cause) {
        // The body broke off: its source says why, and the backend is not to blame (GWY-099).
        const broken = init.body instanceof Readable ? init.body.errored : null;
        const given = broken !== null || init.signal?.aborted === true;
        pool.takeBack(lease, isUnsendable(cause) ? 'sound' : given ? 'given up' : 'lost', cause);
        if (given) throw broken ?? cause;
        if (lease.ended)
          throw kernelProblem('no_backend', {
            detail: 'The connection was needed for somebody else. Try again in a moment.',
            headers: { 'retry-after': '3' },
          });
        if (isUnsendable(cause)) throw kernelProblem('malformed', { detail: 'The request cannot be forwarded as it was written.', cause });
        this.#directory.suspect(address);
        const { code } = cause as { code?: string };
        // A second try only before a byte of the answer, and only where running twice is harmless (hardening H-27).
        const unsent = code === 'ECONNREFUSED' || code === 'UND_ERR_CONNECT_TIMEOUT';
        const harmless =
          !streams && code !== 'UND_ERR_HEADERS_TIMEOUT' && (IDEMPOTENT.has(init.method) || unsent || init.headers['idempotency-key']);
        if (attempt === 0 && harmless) continue;
        throw unanswered(service, cause);
      }
    }
  }

  #load(service: string, address: Address): { in_flight: number; pool_idle: number } {
    const { ordinary, lasting, idle } = this.#pools.to(service, address);
    return { in_flight: ordinary + lasting, pool_idle: idle };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pools[Symbol.asyncDispose]();
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
