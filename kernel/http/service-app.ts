import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { admits, type AnyRoute, type ErrorForm, type Logger, type NodeExchange, type RawExchange, type Request } from '@platform/sdk';
import type { Clock } from '../base/clock.ts';
import { kernelProblem } from '../base/kernel-problem.ts';
import type { Manifest } from '../base/manifest.ts';
import { actionKey } from '../identity/scope-name.ts';
import type { Identity, Verifier, VerifyRequest } from '../identity/verifier.ts';
import type { PolicyEngine } from '../policy/policy-engine.ts';
import { inScope } from '../telemetry/request-scope.ts';
import { CORRELATION_HEADER, type Exchange, readExchange, readJson, refuseAmbiguous, refuseNulIn } from './exchange.ts';
import { writeEventStream } from './event-stream.ts';
import { type Incoming, Operation, type OperationHost, type Outgoing } from './operation.ts';
import { problemResponse } from './problem-response.ts';
import { type Match, RouteTable } from './route-table.ts';
import type { ServiceMetrics } from '../telemetry/service-metrics.ts';
import type { StreamTickets } from './stream-tickets.ts';
import { webRequest, writeResponse } from './web-exchange.ts';
import { SocketConnection } from './web-socket.ts';
import { writeAnswer } from './write-answer.ts';

export type RouteHandler = (...input: never[]) => unknown;
export interface MountedRoute {
  readonly route: AnyRoute;
  readonly handler: RouteHandler;
}
export interface ServiceAppOptions {
  readonly manifest: Manifest;
  readonly routes: Readonly<Record<string, MountedRoute>>;
  readonly actions: OperationHost['actions'];
  readonly engine: PolicyEngine;
  readonly verifier: Verifier;
  readonly log: Logger;
  readonly clock: Clock;
  /** Opens event streams for browsers, which can send no header. */
  readonly tickets: StreamTickets;
  /** The origin under which clients know a host. */
  readonly originOf: (host: string) => string;
  /** False while the service may not take new work. */
  readonly accepting: () => boolean;
  readonly environments?: OperationHost['environments'];
  readonly answers?: OperationHost['answers'];
  readonly metrics?: ServiceMetrics;
  readonly seen?: OperationHost['seen'];
  /** Further paths of routes, for page data: `{id}` of the path becomes the route's own parameter. */
  readonly aliases?: readonly { method: string; path: string; operation: string; idParameter?: string; target: 'required' | 'optional' }[];
}

interface Mounted extends MountedRoute {
  readonly name: string;
  readonly operation: Operation | undefined;
  readonly idParameter?: string;
  readonly alias?: true;
}

const JSON_TYPE = 'application/json';
/** Answered while the service drains or is not up yet: whoever watches it must see that. */
const PROBES = new Set(['kernel.health', 'kernel.readiness', 'kernel.metrics']);

/** The doors of one service, and what stands before all of them. */
export class ServiceApp {
  readonly manifest: Manifest;
  readonly operations = new Map<string, Operation>();
  readonly #table = new RouteTable<Mounted>();
  readonly #options: ServiceAppOptions;
  /** Ends what would otherwise last: long polls, event streams, sockets. */
  readonly #stopping = new AbortController();
  /** What its requests end by. Each has a signal of its own: one made of several would keep its request until the next full collection. */
  readonly #lasting = new Set<AbortController>();
  #active = 0;
  #idle: (() => void) | undefined;

  constructor(options: ServiceAppOptions) {
    const { manifest, engine, actions, environments, answers, seen } = options;
    this.manifest = manifest;
    this.#options = options;
    const host: OperationHost = {
      service: manifest.id,
      vertical: manifest.vertical,
      engine,
      actions,
      env: manifest.env,
      ...(environments ? { environments } : {}),
      ...(answers ? { answers } : {}),
      ...(seen ? { seen } : {}),
    };
    for (const [name, { route, handler }] of Object.entries(options.routes)) {
      if (route.door === 'listener') continue;
      const operation = new Operation(host, name, route, handler as (request: Request) => Promise<unknown>);
      this.operations.set(name, operation);
      this.#table.add(route.method, route.path, { name, route, handler, operation });
    }
    for (const { method, path, operation: name, idParameter, target } of options.aliases ?? []) {
      const { route, handler } = options.routes[name] as MountedRoute;
      // A route may already stand where its page's data is read.
      if (route.method === method && shapeOf(route.path) === shapeOf(path)) continue;
      const aliased = {
        ...route,
        method: method as AnyRoute['method'],
        options: { ...route.options, ...(target === 'required' ? { env: 'target' as const } : route.options.env === 'target' ? { env: 'own' as const } : {}) },
      };
      const operation = new Operation(host, name, aliased, handler as (request: Request) => Promise<unknown>);
      this.#table.add(method, path, { name, route: aliased, handler, operation, alias: true, ...(idParameter ? { idParameter } : {}) });
    }
  }

  get active(): number {
    return this.#active;
  }

  handle(req: IncomingMessage, res: ServerResponse): void {
    this.#active += 1;
    res.once('close', () => {
      this.#active -= 1;
      if (this.#active === 0) this.#idle?.();
    });
    this.#serve(req, res).catch(error => {
      this.#options.log.error({ err: error }, 'a request could not be answered');
      res.destroy();
    });
  }

  /** Asks everything long-lived to end, and resolves when nothing is in flight. */
  async idle(): Promise<void> {
    this.#stopping.abort();
    for (const ended of this.#lasting) ended.abort();
    if (this.#active === 0) return;
    await new Promise<void>(resolve => {
      this.#idle = resolve;
    });
  }

  /** An operation called from inside the process; the input has been through JSON, the identity is the kernel's word. */
  call(name: string, incoming: Incoming): Promise<Outgoing> {
    const operation = this.operations.get(name);
    if (!operation) throw kernelProblem('not_found', { detail: `${this.manifest.id} has no route ${name}.` });
    return operation.run(incoming);
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { manifest, accepting } = this.#options;
    const exchange = readExchange(req, manifest.id);
    const begun = performance.now();
    let operation = 'none';
    await inScope({ correlationId: exchange.correlationId, service: manifest.id }, async () => {
      try {
        refuseAmbiguous(req);
        const match = this.#match(req.method ?? 'GET', exchange.url.pathname);
        operation = match.name;
        const exempt = PROBES.has(match.name);
        if (!accepting() && !exempt) throw kernelProblem('draining', { headers: { 'retry-after': '2', connection: 'close' } });
        refuseNulIn(exchange.url);
        await this.#enter(res, exchange, match);
      } catch (error) {
        this.#refuse(res, error, exchange);
      }
      this.#tell(exchange, operation, res.statusCode, performance.now() - begun);
    });
  }

  /** One line and one figure for each request. The route stands for its path, which may carry what no log keeps. */
  #tell({ req, peer }: Exchange, operation: string, status: number, ms: number): void {
    const { metrics, log } = this.#options;
    metrics?.answered(operation, status, ms / 1_000);
    // What services ask of each other, and probes, are many and of little news.
    const level = peer || PROBES.has(operation) ? 'debug' : 'info';
    log[level]({ method: req.method, operation, status, ms: Math.round(ms * 10) / 10 }, 'request answered');
  }

  #match(method: string, path: string): Match<Mounted> & { name: string } {
    const found = this.#table.find(method, this.#options.manifest.aliases[path] ?? path);
    if (found === 'malformed') throw kernelProblem('malformed', { detail: 'The path is not well encoded.' });
    if (found === undefined) throw kernelProblem('not_found', { detail: `${this.#options.manifest.id} has nothing at this path.` });
    if ('methods' in found) throw kernelProblem('method_not_allowed', { headers: { allow: found.methods.flatMap(known => (known === 'GET' ? ['GET', 'HEAD'] : [known])).join(', ') } });
    return { ...found, name: found.value.name };
  }

  async #enter(res: ServerResponse, exchange: Exchange, match: Match<Mounted>): Promise<void> {
    const { req } = exchange;
    const { route, handler, operation } = match.value;
    // A request door writes its headers in one piece, this one among them.
    if (route.door !== 'request') res.setHeader(CORRELATION_HEADER, exchange.correlationId).setHeader('x-content-type-options', 'nosniff');
    const { idParameter } = match.value;
    const params = idParameter ? { ...match.params, [idParameter]: match.params['id'] as string } : match.params;
    const signal = this.#lifetime(res);
    const incoming = this.#incoming(exchange, params, signal, route.door === 'stream' ? match.value : undefined);
    switch (route.door) {
      case 'request': {
        requireAcceptable(req, route);
        const ran = await (operation as Operation).run(incoming);
        // Page mutations always answer 200 with an object (G-K-18).
        const outgoing = match.value.alias && ran.value === undefined ? { ...ran, status: 200, value: { ok: true } } : ran;
        if (req.method === 'GET' && outgoing.value !== undefined) requireAdmitted(req, outgoing.headers['content-type'] ?? JSON_TYPE);
        writeAnswer(res, outgoing, exchange.correlationId);
        return;
      }
      case 'stream': {
        requireAdmitted(req, 'text/event-stream');
        const request = await (operation as Operation).open(incoming);
        req.socket.setTimeout(0);
        const source = (handler as (request: Request) => AsyncIterable<{ data: unknown }>)(request);
        await writeEventStream(res, source, { signal: incoming.signal(), clock: this.#options.clock }).catch(error => this.#options.log.warn({ err: error }, 'event stream ended'));
        return;
      }
      case 'node': {
        const exchanged: NodeExchange = { req, res, hostname: exchange.hostname, ip: exchange.ip, correlationId: exchange.correlationId, peer: exchange.peer };
        await (handler as (exchange: NodeExchange) => void | Promise<void>)(exchanged);
        return;
      }
      case 'raw': {
        const request = await (operation as Operation).open(incoming);
        const response = await (handler as (exchange: RawExchange) => Promise<Response>)({
          params: match.params,
          request: webRequest(req, exchange, signal()),
          hostname: exchange.hostname,
          ip: exchange.ip,
          correlationId: exchange.correlationId,
          tenant: exchange.tenant,
          caller: request.caller,
          peer: request.peer,
          targetEnvId: request.targetEnvId,
          env: request.env,
          permits: async action => request.caller !== undefined && this.#permits(await incoming.identity(), action, request.targetEnvId, exchange.correlationId),
        });
        await writeResponse(res, response);
        return;
      }
      default:
        throw kernelProblem('not_found', { detail: 'Connect with a WebSocket upgrade.' });
    }
  }

  /** A protocol upgrade for a socket door. */
  async upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { manifest, log } = this.#options;
    const exchange = readExchange(req, manifest.id);
    await inScope({ correlationId: exchange.correlationId, service: manifest.id }, async () => {
      using connection = new SocketConnection(req, socket, head);
      try {
        refuseAmbiguous(req);
        const match = this.#match('GET', exchange.url.pathname);
        refuseNulIn(exchange.url);
        if (match.value.route.door !== 'socket') throw kernelProblem('not_found', { detail: 'This path takes no WebSocket.' });
        const closed = new AbortController();
        void connection.closed.then(() => closed.abort());
        this.#stopping.signal.addEventListener('abort', () => connection.close(1001, 'the service is stopping'), { once: true, signal: closed.signal });
        const request = await (match.value.operation as Operation).open(this.#incoming(exchange, match.params, () => closed.signal));
        await (match.value.handler as (connection: SocketConnection, request: Request) => Promise<void>)(connection, request);
      } catch (error) {
        if (connection.accepted) {
          log.warn({ err: error }, 'socket handler failed');
          return connection.close(1011, 'internal');
        }
        const { status, headers, body } = problemResponse(error, { service: manifest.id, correlationId: exchange.correlationId, log });
        const lines = Object.entries({ ...headers, connection: 'close', 'content-length': String(Buffer.byteLength(body)) }).map(([name, value]) => `${name}: ${value}`);
        socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
      }
    });
  }

  #permits(identity: Identity, action: string, targetEnvId: string | undefined, correlationId: string): Promise<boolean> {
    const { engine, manifest } = this.#options;
    return engine.allows({ identity, action: actionKey(manifest.vertical, action), envId: targetEnvId ?? identity.caller.envId, correlationId });
  }

  /** Aborts when the client goes before its answer, or the service stops. Made when first asked for: most handlers never do. */
  #lifetime(res: ServerResponse): () => AbortSignal {
    let ended: AbortController | undefined;
    return () => {
      if (ended) return ended.signal;
      const made = new AbortController();
      ended = made;
      if (res.closed || this.#stopping.signal.aborted) made.abort();
      else {
        this.#lasting.add(made);
        res.once('close', () => {
          this.#lasting.delete(made);
          if (!res.writableFinished) made.abort();
        });
      }
      return made.signal;
    };
  }

  #incoming(exchange: Exchange, params: Readonly<Record<string, string>>, signal: () => AbortSignal, stream?: Mounted): Incoming {
    const { req, url, peer, tenant, hostname, ip, correlationId } = exchange;
    let identity: Promise<Identity> | undefined;
    // A browser's EventSource cannot send a header; no other door takes a credential from a URL (H-06).
    const inQuery = (name: string) => (stream && req.headers.authorization === undefined && req.headers.accept === 'text/event-stream' ? url.searchParams.get(name) : null);
    const [token, ticket] = [inQuery('token'), inQuery('ticket')];
    const authorization = req.headers.authorization ?? (token === null ? undefined : `Bearer ${token}`);
    const verify = (): Promise<Identity> =>
      ticket !== null && token === null && stream?.operation
        ? this.#options.tickets.redeem(stream.name, ticket, stream.operation.gateKeys)
        : this.#options.verifier.verify({ authorization, peer, service: this.manifest.id, tenantEnvId: tenant.envId, shown: this.#shownAt(exchange) });
    return {
      params,
      query: url.searchParams,
      headers: req.headers as Record<string, string | undefined>,
      identity: () => (identity ??= verify()),
      body: limit => readJson(req, limit),
      correlationId,
      signal,
      ip,
      hostname,
      tenant,
      peer,
      method: req.method ?? 'GET',
    };
  }

  /** What a proof of possession must name: the address as the client saw it, by the public name or, without an ingress between, by the port it came to. */
  #shownAt({ req, url, hostname }: Exchange): NonNullable<VerifyRequest['shown']> {
    const [proof, host = ''] = [req.headers['dpop'], req.headers.host];
    const named = URL.parse(`https://${host}`)?.hostname === hostname ? [`https://${host}${url.pathname}`] : [];
    const urls = proof === undefined ? [] : [this.#options.originOf(hostname) + url.pathname, ...named];
    return { proof: Array.isArray(proof) ? proof.join(', ') : proof, method: req.method ?? 'GET', urls };
  }

  #refuse(res: ServerResponse, error: unknown, { req, correlationId, url }: Exchange): void {
    const form = this.#formAt(req.method ?? 'GET', url.pathname);
    const { status, headers, body, code } = problemResponse(error, { service: this.manifest.id, correlationId, log: this.#options.log, form });
    this.#options.seen?.('', status, code);
    this.#options.metrics?.refused(code);
    if (res.headersSent) return void res.destroy();
    // An unread body would be taken for the next request.
    const connection = req.complete ? {} : { connection: 'close' };
    res.writeHead(status, { ...headers, ...connection, 'content-length': Buffer.byteLength(body) }).end(body);
  }

  /** How the route at this path refuses; also where the path is not well encoded, which is no reason to answer a client in another API's words. */
  #formAt(method: string, path: string): ErrorForm | undefined {
    const found = this.#table.find(method, path.replaceAll('%', ''));
    if (found === undefined || found === 'malformed') return undefined;
    // A path of an API that is declared beside the rest of it refuses a wrong method as the rest does.
    return ('value' in found ? found : found.around)?.value.route.options.errors;
  }
}

/** A change is not made when nobody would read its answer. */
function requireAcceptable(req: IncomingMessage, { method, options }: AnyRoute): void {
  if (method !== 'GET' && options.returns !== undefined) requireAdmitted(req, JSON_TYPE);
}

function requireAdmitted({ headers }: IncomingMessage, type: string): void {
  if (!admits(headers.accept, type)) throw kernelProblem('not_acceptable', { detail: `This is answered as ${type.split(';')[0]}; Accept does not admit it.` });
}

const shapeOf = (path: string) => path.replaceAll(/\{[^}]+\}/g, '{}');
