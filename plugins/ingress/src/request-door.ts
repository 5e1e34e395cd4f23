import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { isProblem, type ProcessLimit } from '@platform/sdk';
import { type BodyIntake, BodyRefused, ClientGone, WHOLE } from './body-intake.ts';
import type { Ctx } from './context.ts';
import { partyOf } from './edge-bounds.ts';
import type { HostMappings, Mapping } from './host-mappings.ts';
import type { EdgeTraffic } from './management/edge-traffic.ts';
import type { EdgeSettings } from './policy/edge-settings.ts';
import { HSTS, isGone, isRefusal, type Refusal, refuse, refuseSocket, streamOf } from './refusal.ts';
import { backendHeaders, backendTrailers, correlationOf, mayBeTrailed, refusalOf, trailerNames } from './request-headers.ts';
import { targetOf } from './request-target.ts';
import type { Findings } from './screening/findings.ts';
import { type Finding, screen } from './screening/screen.ts';
import { ScreenedStream } from './screening/screened-stream.ts';
import type { UnreadAnswers } from './unread-answers.ts';

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';
const isStream = (res: ServerResponse) => String(res.getHeader('content-type') ?? '').startsWith('text/event-stream');
const BLOCKED: Refusal = { status: 403, code: 'waf_blocked', title: 'The request was refused by screening', lingers: true };

export interface RequestDoorParts {
  readonly mappings: HostMappings;
  readonly bodies: BodyIntake;
  readonly unread: UnreadAnswers;
  readonly settings: EdgeSettings;
  readonly rates: ProcessLimit;
  readonly findings: Findings;
  readonly traffic: EdgeTraffic;
}
interface Admitted {
  readonly mapping: Mapping;
  /** Says why a request is refused by what is in it; records what was found either way. */
  readonly screened: (body: Uint8Array | undefined) => Refusal | undefined;
  /** The same of a large body, while it passes; `refused` hears of what blocks it. */
  readonly passing: (body: Readable, refused: (refusal: Refusal) => void) => Readable;
  /** What came behind the body, screened as headers are; `undefined` after `refused`. */
  readonly trailed: (refused: (refusal: Refusal) => void) => Record<string, string> | undefined;
}

/**
 * Layer 7: each request judged, resolved by host, limited and screened as its environment says, given the context and forwarded (ING-004).
 */
export class RequestDoor {
  readonly #ctx: Ctx;
  readonly #parts: RequestDoorParts;
  #active = 0;

  constructor(ctx: Ctx, parts: RequestDoorParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** Requests and upgraded connections under way: the drain signal (ING-024). */
  get active(): number {
    return this.#active;
  }

  async request(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const correlationId = this.correlationOf(req);
    const since = performance.now();
    this.#active += 1;
    if (streamOf(res)) this.#parts.traffic.count('requests_http2');
    this.#parts.unread.watch(res, partyOf(req.socket.remoteAddress));
    res.once('close', () => {
      this.#active -= 1;
      this.#parts.traffic.answered(res.statusCode, isStream(res) ? undefined : performance.now() - since);
    });
    try {
      // What was asked and taken back in one packet is known by the next turn, and costs no backend a connection (rapid reset).
      if (streamOf(res)) await turn();
      if (isGone(res)) return;
      const refusal = await this.#forward(req, res, correlationId);
      if (refusal) this.#refuse(req, res, refusal, correlationId);
    } catch (error) {
      if (isGone(res) || error instanceof ClientGone) return void (streamOf(res) ?? res).destroy();
      this.#refuse(req, res, this.#named(error), correlationId);
    }
  }

  /** Answers in place of a backend, which would have written the line of this request. */
  #refuse(req: IncomingMessage, res: ServerResponse, refusal: Refusal, correlationId: string): void {
    this.told(refusal, correlationId, req);
    refuse(res, refusal, correlationId);
  }

  /** The log line of a request that ends at the edge; those that are forwarded are told by the service that answers. */
  told({ status, code, envId }: Refusal, correlationId: string, req?: IncomingMessage): void {
    this.#ctx.log.info(
      { correlation_id: correlationId, ...(envId ? { env_id: envId } : {}), ...(req ? { method: req.method } : {}), status, code },
      'request refused at the edge',
    );
  }

  async upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const correlationId = this.correlationOf(req);
    const refused = (refusal: Refusal) => {
      this.told(refusal, correlationId, req);
      refuseSocket(socket, refusal, correlationId);
    };
    (req.socket as TLSSocket).setTimeout(0);
    socket.on('error', () => socket.destroy());
    this.#active += 1;
    try {
      const admitted = await this.#admit(req, correlationId);
      if (isRefusal(admitted)) return refused(admitted);
      const target = targetOf(req);
      if (target === 'server') return refused({ status: 400, code: 'malformed', title: 'A path is needed to upgrade' });
      const refusal = isRefusal(target) ? target : admitted.screened(undefined);
      if (refusal) return refused(refusal);
      req.url = (target as { path: string }).path;
      const headers = backendHeaders(req, admitted.mapping, { correlationId, ip: ipOf(req), upgrade: true });
      await this.#ctx.backends.upgrade(admitted.mapping.service, { req, socket, head, headers, party: partyOf(req.socket.remoteAddress) });
    } catch (error) {
      refused(this.#named(error));
    } finally {
      this.#active -= 1;
    }
  }

  correlationOf(req: IncomingMessage): string {
    return correlationOf(req, () => this.#ctx.platform.newId());
  }

  async #forward(req: IncomingMessage, res: ServerResponse, correlationId: string): Promise<Refusal | undefined> {
    const admitted = await this.#admit(req, correlationId);
    if (isRefusal(admitted)) return admitted;
    const { mapping } = admitted;
    const target = targetOf(req);
    if (target === 'server') return void res.writeHead(204, { allow: METHODS, 'x-platform-correlation-id': correlationId, ...HSTS }).end();
    if (isRefusal(target)) return target;
    req.url = target.path;
    const party = partyOf(req.socket.remoteAddress);
    const body = await this.#parts.bodies.take(req, party, refusal => {
      res.once('finish', () => req.destroy());
      this.#refuse(req, res, refusal, correlationId);
    });
    // A large body is screened on its way.
    const refusal = admitted.screened(body?.rest ? undefined : body?.begun);
    if (refusal) return refusal;
    const headers = backendHeaders(req, mapping, { correlationId, ip: ipOf(req) });
    // What was read whole has a length, however it came.
    if (body && !body.rest) headers['content-length'] = String(body.begun.byteLength);
    for (const [name, value] of Object.entries(HSTS)) res.setHeader(name, value);
    const rest = body?.rest && admitted.passing(body.rest, refused => this.#refuse(req, res, refused, correlationId));
    const trailer = body ? trailerNames(req) : undefined;
    const trailers = mayBeTrailed(req, body, trailer)
      ? () => admitted.trailed(refused => this.#refuse(req, res, refused, correlationId))
      : undefined;
    if (trailer !== undefined) headers['trailer'] = trailer;
    await this.#ctx.backends.forward(mapping.service, { req, res, headers, body: body && (rest ?? body.begun), party, trailers });
    return undefined;
  }

  async #admit(req: IncomingMessage, correlationId: string): Promise<Admitted | Refusal> {
    const refusal = refusalOf(req);
    if (refusal) return refusal;
    const host = (req.headers.host ?? '').toLowerCase().replace(/:\d+$/, '').replace(/\.$/, '');
    const { servername } = req.socket as TLSSocket;
    const misdirected = { status: 421, code: 'misdirected', title: 'This listener does not serve that host' };
    // One connection, one name: a Host that disagrees with SNI would borrow the other tenant's certificate.
    if (typeof servername === 'string' && servername !== '' && servername.toLowerCase().replace(/\.$/, '') !== host) return misdirected;
    const mapping = await this.#parts.mappings.find(host);
    if (!mapping) return misdirected;
    if (mapping.status === 'suspended')
      return { status: 403, code: 'tenant_suspended', title: 'This environment is suspended', envId: mapping.env_id };
    const { waf, wafLargeBodies, limited, rps } = await this.#parts.settings.of(mapping.env_id);
    // As many at once as two seconds give (ING-036).
    const rate = { perSecond: rps, burst: rps * 2 };
    const counted = limited ? this.#parts.rates.take(`${partyOf(req.socket.remoteAddress)} ${mapping.env_id}`, 1, rate) : undefined;
    if (counted?.allowed === false)
      return {
        status: 429,
        code: 'rate_limited',
        title: 'Too many requests from this address',
        headers: counted.headers,
        envId: mapping.env_id,
      };
    if (waf === 'off') return { mapping, screened: () => undefined, passing: body => body, trailed: () => backendTrailers(req) };
    const found = (finding: Finding | undefined) =>
      finding && this.#found(req, mapping, { finding, blocks: waf === 'block', correlationId });
    const screened = (body: Uint8Array | undefined) =>
      found(screen({ target: req.url ?? '/', headers: plain(req.headers), ...(body ? { body } : {}) }));
    const trailed = (refused: (refusal: Refusal) => void) => {
      const trailers = backendTrailers(req);
      const refusal = found(screen({ target: '', headers: trailers }));
      if (refusal) refused(refusal);
      return refusal ? undefined : trailers;
    };
    return {
      mapping,
      screened,
      trailed,
      passing: (body, refused) => screenedOnTheWay(req, body, { whole: wafLargeBodies, found, refused }),
    };
  }

  /** Records what screening found. */
  #found(
    req: IncomingMessage,
    mapping: Mapping,
    { finding, blocks, correlationId }: { finding: Finding; blocks: boolean; correlationId: string },
  ): Refusal | undefined {
    const { threat, place, reason } = finding;
    const outcome = blocks ? 'blocked' : 'passed';
    this.#parts.findings.add(finding, mapping, {
      finding_id: this.#ctx.platform.newId(),
      at: this.#ctx.clock.now().toISOString(),
      ip: ipOf(req),
      method: req.method ?? '',
      outcome,
      correlation_id: correlationId,
    });
    this.#ctx.log.warn(
      { threat, place, reason, outcome, host: mapping.hostname, env_id: mapping.env_id, correlation_id: correlationId },
      'screening found something',
    );
    return blocks ? { ...BLOCKED, envId: mapping.env_id } : undefined;
  }

  /** The answer to what was thrown on the way. */
  #named(error: unknown): Refusal {
    if (error instanceof BodyRefused) return error.refusal;
    if (!isProblem(error)) {
      this.#ctx.log.warn({ err: error }, 'forwarding failed');
      return { status: 502, code: 'backend_unreachable', title: 'The backend did not answer' };
    }
    // What the kernel calls unresolved is no backend here (G-PROXY-04).
    if (error.code === 'backend_unresolved')
      return { status: 503, code: 'no_backend', title: 'No backend is active', headers: { 'retry-after': '3' } };
    return { status: error.status, code: error.code, title: error.title, detail: error.detail, headers: error.headers };
  }
}

const ipOf = (req: IncomingMessage) => (req.socket.remoteAddress ?? '').replace(/^::ffff:/, '');
/** Without HTTP/2's own names, which the target and the host stand for. */
const plain = (headers: IncomingMessage['headers']) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(':')));

function screenedOnTheWay(
  req: IncomingMessage,
  body: Readable,
  { whole, found, refused }: { whole: boolean; found: (finding: Finding) => Refusal | undefined; refused: (refusal: Refusal) => void },
): Readable {
  const screening = new ScreenedStream(String(req.headers['content-type'] ?? ''), whole ? Number.POSITIVE_INFINITY : WHOLE, finding => {
    const refusal = found(finding);
    // What the backend had of it goes with its connection; the rest is read and dropped.
    if (refusal) setImmediate(() => (body.unpipe(screening), refused(refusal)));
    return refusal ? 'blocks' : 'passes';
  });
  body.once('close', () => body.readableEnded || screening.destroy());
  return body.pipe(screening);
}
