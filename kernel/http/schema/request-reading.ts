import { type AnyRoute, milliseconds, type ProblemDecl, ProblemError, type Request, Type } from '@platform/sdk';
import { kernelProblem, type KernelProblemCode } from '../../base/kernel-problem.ts';
import type { BodyBounds } from '../doors/request-body.ts';
import type { Incoming } from '../operation-call.ts';
import { requireCursor } from '../paging.ts';
import { versionsOf } from '../precondition.ts';
import { closed, readQuery, Validator } from './schema.ts';

/** Members the gateway and SSE clients add to any query. */
const TOLERATED = ['target_env_id', 'target_org_id', 'token', 'ticket'];
const DEFAULT_LIMIT = 1_048_576;
const DEFAULT_WITHIN = '2m';
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** What is read of a request at one route: path, query and body against their schemas, the body within its bounds. */
export class RequestReading {
  readonly bounds: BodyBounds;
  readonly #route: AnyRoute;
  readonly #params: Validator | undefined;
  readonly #query: Validator;
  readonly #body: Validator | undefined;

  constructor(service: string, problems: Readonly<Record<string, ProblemDecl>>, route: AnyRoute) {
    const { params, query, body } = route.options;
    this.#route = route;
    this.#params = params && new Validator(Type.Object(params));
    this.#query = new Validator(closed(Type.Object(query ?? {})));
    this.#body = body && new Validator(closed(body));
    this.bounds = boundsOf(service, problems, route);
  }

  async read(incoming: Incoming): Promise<Pick<Request, 'query' | 'body'>> {
    const { door, options } = this.#route;
    this.#requireParams(incoming);
    this.#requireVersioned(incoming);
    const schemaless = door !== 'request' && door !== 'upload' && options.query === undefined;
    const query = schemaless ? {} : this.#readQuery(incoming.query);
    if (door === 'request') return { query, body: await this.#readBody(incoming) };
    if (door === 'upload') return { query, body: incoming.bytes?.stream(this.bounds) };
    return { query, body: undefined };
  }

  #requireParams({ params }: Incoming): void {
    if (this.#params && !this.#params.check(params))
      throw kernelProblem('validation_failed', {
        extra: { errors: this.#params.faults(params, '/params') },
        detail: 'The path does not fit; errors says where.',
      });
  }

  /** A condition that nobody compares would be passed over, and somebody's change lost (G-K-03). */
  #requireVersioned({ headers }: Incoming): void {
    const { door, method, options } = this.#route;
    if (door !== 'request' || SAFE.has(method) || options.ifMatch || versionsOf(headers['if-match']) === undefined) return;
    throw kernelProblem('precondition_unsupported', { detail: 'Send this without If-Match; the record that has the ETag takes it.' });
  }

  #readQuery(source: Incoming['query']): unknown {
    const properties = this.#route.options.query ?? {};
    const read = source instanceof URLSearchParams ? readQuery(source, properties) : { ...source };
    for (const member of TOLERATED) if (!(member in properties)) delete read[member];
    if ('cursor' in properties && read['cursor'] !== undefined) requireCursor(read['cursor']);
    if (!this.#query.check(read))
      throw kernelProblem('validation_failed', {
        extra: { errors: this.#query.faults(read, '/query') },
        detail: 'The query does not fit; errors says where.',
      });
    return read;
  }

  async #readBody(incoming: Incoming): Promise<unknown> {
    const { method } = this.#route;
    if (method === 'GET' || method === 'DELETE') return undefined;
    const body = await incoming.body(this.bounds);
    if (!this.#body) {
      if (body === undefined || (typeof body === 'object' && body !== null && Object.keys(body).length === 0)) return undefined;
      throw kernelProblem('validation_failed', { detail: 'This request takes no body.' });
    }
    if (!this.#body.check(body))
      throw kernelProblem('validation_failed', {
        extra: { errors: this.#body.faults(body) },
        detail: 'The body does not fit; errors says where.',
      });
    return body;
  }
}

/** What a route allows a body, in the words of its own problems where it names some. */
function boundsOf(service: string, problems: Readonly<Record<string, ProblemDecl>>, { options }: AnyRoute): BodyBounds {
  const { limit = DEFAULT_LIMIT, within = DEFAULT_WITHIN, bodyProblems: { tooLarge, tooSlow } = {} } = options;
  const refusal = (own: string | undefined, code: KernelProblemCode, detail: string) => () => {
    const declared = own === undefined ? undefined : problems[own];
    // What is left unread would be taken for the next request.
    const more = { detail, headers: { connection: 'close' } };
    return declared ? new ProblemError(service, own as string, declared, more) : kernelProblem(code, more);
  };
  return {
    limit,
    withinMs: milliseconds(within),
    tooLarge: refusal(tooLarge, 'body_too_large', `At most ${limit} bytes.`),
    tooSlow: refusal(tooSlow, 'body_timeout', `Something at least every 30 s, and all of it within ${within}.`),
  };
}
