import type { IncomingMessage, ServerResponse } from 'node:http';
import { admits, type AnyRoute, type Logger, type NodeExchange, type RawExchange, type Request } from '@platform/sdk';
import type { Clock } from '../../base/clock.ts';
import { kernelProblem } from '../../base/kernel-problem.ts';
import type { Manifest } from '../../base/manifest.ts';
import { actionKey } from '../../identity/tokens/scope-name.ts';
import type { PolicyEngine } from '../../policy/policy-engine.ts';
import { writeEventStream } from './event-stream.ts';
import { CORRELATION_HEADER, type Exchange, parseJson } from './exchange.ts';
import type { RequestBody } from './request-body.ts';
import type { Operation } from '../operation.ts';
import type { Incoming } from '../operation-call.ts';
import { webRequest, writeResponse } from './web-exchange.ts';
import type { ProblemResponse } from '../answers/problem-response.ts';
import { writeAnswer } from '../answers/write-answer.ts';

export type RouteHandler = (...input: never[]) => unknown;
export interface MountedRoute {
  readonly route: AnyRoute;
  readonly handler: RouteHandler;
}
export interface Mounted extends MountedRoute {
  readonly name: string;
  readonly operation: Operation | undefined;
  readonly idParameter?: string;
  readonly alias?: true;
}

/** One request at the door that its path leads to. */
export interface Entering {
  readonly res: ServerResponse;
  readonly exchange: Exchange;
  readonly mounted: Mounted;
  readonly operation: Operation;
  readonly incoming: Incoming & { readonly bytes: RequestBody };
  readonly signal: () => AbortSignal;
  readonly manifest: Manifest;
  readonly engine: PolicyEngine;
  readonly clock: Clock;
  readonly log: Logger;
  /** The wire form of a failure at this route, logged and counted. */
  readonly refusal: (thrown: unknown) => ProblemResponse;
}

const JSON_TYPE = 'application/json';

/**
 * Takes a request through its door. All doors share what comes before (identity, gate, rate, bounds, problems); they differ in this last
 * step alone.
 */
export async function enterDoor(entering: Entering): Promise<void> {
  const { res, exchange, mounted } = entering;
  const { door } = mounted.route;
  if (door === 'request' || door === 'upload') return answerRequest(entering);
  // Those two write their headers in one piece, these among them.
  res.setHeader(CORRELATION_HEADER, exchange.correlationId).setHeader('x-content-type-options', 'nosniff');
  if (door === 'stream') return writeStream(entering);
  if (door === 'node') return handOver(entering);
  if (door === 'raw') return answerRaw(entering);
  throw kernelProblem('not_found', { detail: 'Connect with a WebSocket upgrade.' });
}

async function answerRequest({ res, exchange, mounted, operation, incoming }: Entering): Promise<void> {
  const { req } = exchange;
  requireAcceptable(req, mounted.route);
  const ran = await operation.run(incoming);
  // Page mutations always answer 200 with an object (G-K-18).
  const outgoing = mounted.alias && ran.value === undefined ? { ...ran, status: 200, value: { ok: true } } : ran;
  if (req.method === 'GET' && outgoing.value !== undefined) requireAdmitted(req, outgoing.headers['content-type'] ?? JSON_TYPE);
  closeUnread(res, req);
  writeAnswer(res, outgoing, exchange.correlationId);
}

async function writeStream({ res, exchange: { req }, mounted, operation, incoming, clock, log }: Entering): Promise<void> {
  requireAdmitted(req, 'text/event-stream');
  const handler = mounted.handler as (request: Request) => AsyncIterable<{ data: unknown }>;
  const source = await operation.enter(incoming, handler);
  req.socket.setTimeout(0);
  await writeEventStream(res, source, { signal: incoming.signal(), clock }).catch(error => log.warn({ err: error }, 'event stream ended'));
}

function handOver({ res, exchange, mounted, operation, incoming }: Entering): Promise<void> {
  const { req, hostname, ip, correlationId, peer } = exchange;
  return operation.enter(incoming, async ({ caller }) => {
    const body = await incoming.bytes.bytes(operation.bounds);
    const exchanged: NodeExchange = { req, res, body, caller, hostname, ip, correlationId, peer };
    await (mounted.handler as (exchange: NodeExchange) => void | Promise<void>)(exchanged);
  });
}

async function answerRaw(entering: Entering): Promise<void> {
  const { res, exchange, mounted, operation, incoming, signal, engine, manifest, refusal } = entering;
  const { hostname, ip, correlationId, tenant, peer } = exchange;
  let asked = false;
  const response = await operation.enter(incoming, opened => {
    const { caller, targetEnvId, env } = opened;
    const request = webRequest(exchange, incoming.bytes, operation.bounds, signal());
    return (mounted.handler as (exchange: RawExchange) => Promise<Response>)({
      params: incoming.params,
      request,
      json: async ({ of } = {}) => parseJson(new Uint8Array(await request.arrayBuffer()), request.headers.get('content-type') ?? '', of),
      refusal: thrown => {
        const { status, headers, body } = refusal(thrown);
        return new Response(body, { status, headers });
      },
      hostname,
      ip,
      correlationId,
      tenant,
      caller,
      peer,
      targetEnvId,
      env,
      permits: async action => {
        if (caller === undefined) return false;
        const identity = await incoming.identity();
        return engine.allows({
          identity,
          action: actionKey(manifest.vertical, action),
          envId: targetEnvId ?? identity.caller.envId,
          correlationId,
        });
      },
      once: (body, work) => {
        asked = true;
        const { headers, params } = incoming;
        return operation.once(exchange.req.method ?? '', { ...opened, headers, body: [params, exchange.url.search, body] }, work);
      },
    });
  });
  if (!asked && response.ok) requireOnce(exchange.req, mounted);
  closeUnread(res, exchange.req);
  await writeResponse(res, response);
}

/** A door that promises to look at keys, and did not, made something twice without saying so. */
function requireOnce({ method, headers }: IncomingMessage, { name, route }: Mounted): void {
  const { idempotency } = route.options;
  if (method === 'POST' && headers['idempotency-key'] !== undefined && (idempotency === 'kernel' || idempotency === 'secret'))
    throw kernelProblem('answer_invalid', {
      cause: new Error(`${name} says idempotency: '${idempotency}' and did not look at the key: exchange.once is missing`),
    });
}

/** A body that nobody read would be taken for the next request, and may never end. */
function closeUnread(res: ServerResponse, req: IncomingMessage): void {
  if (!req.complete) res.setHeader('connection', 'close');
}

/** A change is not made when nobody would read its answer. */
function requireAcceptable(req: IncomingMessage, { method, options }: AnyRoute): void {
  if (method !== 'GET' && options.returns !== undefined) requireAdmitted(req, JSON_TYPE);
}

function requireAdmitted({ headers }: IncomingMessage, type: string): void {
  if (!admits(headers.accept, type))
    throw kernelProblem('not_acceptable', { detail: `This is answered as ${type.split(';')[0]}; Accept does not admit it.` });
}
