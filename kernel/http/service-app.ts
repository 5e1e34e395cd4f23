import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AnyRoute, ErrorForm, Logger, Request } from '@platform/sdk';
import Koa, { type Next, type ParameterizedContext } from 'koa';
import type { Clock } from '../base/clock.ts';
import { kernelProblem } from '../base/kernel-problem.ts';
import type { Manifest } from '../base/manifest.ts';
import type { Verifier } from '../identity/tokens/verifier.ts';
import type { PolicyEngine } from '../policy/policy-engine.ts';
import { inScope } from '../telemetry/request-scope.ts';
import { enterDoor, type Mounted, type MountedRoute } from './doors/door.ts';
import { type Exchange, readExchange, refuseAmbiguous, refuseNulIn } from './doors/exchange.ts';
import { incomingOf } from './doors/incoming.ts';
import { Lifetimes } from './lifetimes.ts';
import { Operation, type OperationHost } from './operation.ts';
import type { Incoming, Outgoing } from './operation-call.ts';
import { type ProblemResponse, problemResponse } from './answers/problem-response.ts';
import { malformed, type Match, RouteTable } from './route-table.ts';
import type { PageResource } from './pages/page-resources.ts';
import type { ServiceMetrics } from '../telemetry/service-metrics.ts';
import type { StreamTickets } from './doors/stream-tickets.ts';
import { SocketConnection } from './doors/web-socket.ts';

export type { MountedRoute, RouteHandler } from './doors/door.ts';
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
  readonly limit?: OperationHost['limit'];
  readonly metrics?: ServiceMetrics;
  readonly seen?: OperationHost['seen'];
  readonly aliases?: readonly PageResource[];
}

/** What the middlewares of one request hand on. */
interface DoorState {
  exchange: Exchange;
  operation: string;
}
type DoorContext = ParameterizedContext<DoorState>;

/** Answered while the service drains or is not up yet: a watcher must see that. */
const PROBES = new Set(['kernel.health', 'kernel.readiness', 'kernel.metrics']);

/** Whether its answer waits, or goes on, for as long as nothing happens. */
const waits = (route: AnyRoute | undefined): boolean =>
  route !== undefined && (route.options.waits === true || route.door === 'stream' || route.door === 'socket');

/** The doors of one service, and what stands before all of them. */
export class ServiceApp {
  readonly manifest: Manifest;
  readonly operations = new Map<string, Operation>();
  readonly #table = new RouteTable<Mounted>((ctx, match) => this.#enter(ctx as DoorContext, match));
  readonly #options: ServiceAppOptions;
  readonly #lifetimes = new Lifetimes();
  readonly #answer: (req: IncomingMessage, res: ServerResponse) => Promise<void>;
  #active = 0;
  #idle: (() => void) | undefined;

  constructor(options: ServiceAppOptions) {
    const { manifest, engine, actions, environments, answers, seen, limit } = options;
    this.manifest = manifest;
    this.#options = options;
    const host: OperationHost = {
      service: manifest.id,
      vertical: manifest.vertical,
      engine,
      actions,
      env: manifest.env,
      problems: manifest.problems,
      ...(limit ? { limit } : {}),
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
        options: {
          ...route.options,
          ...(target === 'required' ? { env: 'target' as const } : route.options.env === 'target' ? { env: 'own' as const } : {}),
        },
      };
      const operation = new Operation(host, name, aliased, handler as (request: Request) => Promise<unknown>);
      this.#table.add(method, path, { name, route: aliased, handler, operation, alias: true, ...(idParameter ? { idParameter } : {}) });
    }
    for (const [path, canonical] of Object.entries(manifest.aliases)) {
      for (const [name, { route, handler }] of Object.entries(options.routes)) {
        if (route.path === canonical) this.#table.add(route.method, path, { name, route, handler, operation: this.operations.get(name) });
      }
    }
    this.#answer = this.#application().callback();
  }

  /** The order in which a request passes: one line and one figure, what is refused of every request, the door, what no door answered. */
  #application(): Koa<DoorState> {
    const app = new Koa<DoorState>();
    app.on('error', error => this.#options.log.debug({ err: error }, 'a connection ended before its answer'));
    app.use((ctx, next) => this.#observe(ctx, next));
    app.use(async ({ req, path }, next) => {
      refuseAmbiguous(req);
      if (malformed(path)) throw kernelProblem('malformed', { detail: 'The path is not well encoded.' });
      await next();
    });
    app.use(this.#table.routes());
    app.use(ctx => this.#refuseUnknown(ctx));
    return app;
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
    void this.#answer(req, res);
  }

  /** Asks everything long-lived to end, and resolves when nothing is in flight. */
  async idle(): Promise<void> {
    this.#lifetimes.end();
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

  async #observe(ctx: DoorContext, next: Next): Promise<void> {
    const { req, res } = ctx;
    const begun = performance.now();
    const exchange = readExchange(req, this.manifest.id);
    ctx.state.exchange = exchange;
    ctx.state.operation = 'none';
    // The doors write for themselves: streams, sockets and foreign protocols among them.
    ctx.respond = false;
    res.statusCode = 200;
    await inScope({ correlationId: exchange.correlationId, service: this.manifest.id }, async () => {
      try {
        await next();
      } catch (error) {
        this.#refuse(res, error, exchange);
      }
      this.#tell(exchange, ctx.state.operation, res.statusCode, performance.now() - begun);
    });
  }

  async #enter({ res, state }: DoorContext, { value: mounted, params }: Match<Mounted>): Promise<void> {
    const { exchange } = state;
    state.operation = mounted.name;
    if (!this.#options.accepting() && !PROBES.has(mounted.name))
      throw kernelProblem('draining', { headers: { 'retry-after': '2', connection: 'close' } });
    refuseNulIn(exchange.url);
    const named = mounted.idParameter ? { ...params, [mounted.idParameter]: params['id'] as string } : params;
    const signal = this.#lifetimes.of(res);
    const incoming = this.#incoming(exchange, named, signal, mounted.route.door === 'stream' ? mounted : undefined);
    const operation = mounted.operation as Operation;
    const refusal = (thrown: unknown) => this.#refusal(thrown, exchange, mounted.route.options.errors);
    await enterDoor({ res, exchange, mounted, operation, incoming, signal, refusal, ...this.#options });
  }

  /** What no route of the table took: another method's path, or nothing. */
  #refuseUnknown({ req, path }: DoorContext): never {
    const found = this.#table.find(req.method ?? 'GET', path);
    if (found && typeof found === 'object' && 'methods' in found) throw methodNotAllowed(found.methods);
    throw kernelProblem('not_found', { detail: `${this.manifest.id} has nothing at this path.` });
  }

  /** One line and one figure for each request. The route stands for its path, which may carry what no log keeps. */
  #tell({ req, peer }: Exchange, operation: string, status: number, ms: number): void {
    const { metrics, log } = this.#options;
    metrics?.answered(operation, status, ms / 1_000, { waited: waits(this.manifest.routes[operation]) });
    // What services ask of each other, and probes, are many and of little news.
    const level = peer || PROBES.has(operation) ? 'debug' : 'info';
    log[level]({ method: req.method, operation, status, ms: Math.round(ms * 10) / 10 }, 'request answered');
  }

  /** A protocol upgrade for a socket door. */
  async upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { manifest, log } = this.#options;
    const exchange = readExchange(req, manifest.id);
    const begun = performance.now();
    await inScope({ correlationId: exchange.correlationId, service: manifest.id }, async () => {
      const told = (operation: string, status: number) => this.#tell(exchange, operation, status, performance.now() - begun);
      using connection = new SocketConnection(req, socket, head);
      let operation = 'none';
      try {
        const match = this.#socketAt(req, exchange);
        operation = match.value.name;
        const closed = new AbortController();
        void connection.closed.then(() => closed.abort());
        this.#lifetimes.atEnd(() => connection.close(1001, 'the service is stopping'), closed.signal);
        const incoming = this.#incoming(exchange, match.params, () => closed.signal);
        const request = await (match.value.operation as Operation).enter(incoming, opened => opened);
        await (match.value.handler as (connection: SocketConnection, request: Request) => Promise<void>)(connection, request);
        told(operation, 101);
      } catch (error) {
        if (connection.accepted) {
          log.warn({ err: error }, 'socket handler failed');
          told(operation, 101);
          return connection.close(1011, 'internal');
        }
        const { status, headers, body } = this.#refusal(error, exchange);
        told(operation, status);
        const lines = Object.entries({ ...headers, connection: 'close', 'content-length': String(Buffer.byteLength(body)) }).map(
          ([name, value]) => `${name}: ${value}`,
        );
        socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
      }
    });
  }

  /** The socket door at the path of an upgrade. */
  #socketAt(req: IncomingMessage, { url }: Exchange): Match<Mounted> {
    refuseAmbiguous(req);
    const match = this.#table.find('GET', url.pathname);
    refuseNulIn(url);
    if (!match || match === 'malformed' || 'methods' in match || match.value.route.door !== 'socket')
      throw kernelProblem('not_found', { detail: 'This path takes no WebSocket.' });
    return match;
  }

  #incoming(exchange: Exchange, params: Readonly<Record<string, string>>, signal: () => AbortSignal, stream?: Mounted) {
    return incomingOf(exchange, { params, signal, service: this.manifest.id, ...this.#options, ...(stream ? { stream } : {}) });
  }

  #refuse(res: ServerResponse, error: unknown, exchange: Exchange): void {
    const { req, url } = exchange;
    const { status, headers, body } = this.#refusal(error, exchange, this.#formAt(req.method ?? 'GET', url.pathname));
    if (res.headersSent) return void res.destroy();
    // An unread body would be taken for the next request.
    const connection = req.complete ? {} : { connection: 'close' };
    res.writeHead(status, { ...headers, ...connection, 'content-length': Buffer.byteLength(body) }).end(body);
  }

  /** The wire form of a failure, logged and counted. */
  #refusal(error: unknown, { correlationId }: Exchange, form?: ErrorForm | undefined): ProblemResponse {
    const { log, metrics, seen } = this.#options;
    const refused = problemResponse(error, { service: this.manifest.id, correlationId, log, form });
    seen?.('', refused.status, refused.code);
    metrics?.refused(refused.code);
    return refused;
  }

  /**
   * How the route at this path refuses; also where the path is not well encoded, which is no reason to answer a client in another API's
   * words.
   */
  #formAt(method: string, path: string): ErrorForm | undefined {
    const found = this.#table.find(method, path.replaceAll('%', ''));
    if (found === undefined || found === 'malformed') return undefined;
    // A path of an API that is declared beside the rest of it refuses a wrong method as the rest does.
    return ('value' in found ? found : found.around)?.value.route.options.errors;
  }
}

const methodNotAllowed = (methods: readonly string[]) =>
  kernelProblem('method_not_allowed', {
    headers: { allow: methods.flatMap(known => (known === 'GET' ? ['GET', 'HEAD'] : [known])).join(', ') },
  });
const shapeOf = (path: string) => path.replaceAll(/\{[^}]+\}/g, '{}');
