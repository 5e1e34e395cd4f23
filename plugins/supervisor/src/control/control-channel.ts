import { type AnyRoute, type ControlAnswer, type ControlRequest, isProblem, isReply, problemBody, type StreamItem } from '@platform/sdk';
import { supervisor } from '../../contract/index.ts';
import type { SupervisorContext } from '../context.ts';

type Handler = (request: never) => unknown;

/** Routes of the autoscaler are for identities, not for everybody at the machine (SUP-102). */
const NOT_HERE: ReadonlySet<string> = new Set(['autoscaler', 'decide', 'pending', 'approve', 'reject']);

/** Whether the system's word on a user lets it in: root, and who owns the supervisor (SUP-103). */
export const admitsUser = (uid: number | undefined, owner: number): uid is number => uid !== undefined && (uid === 0 || uid === owner);

interface Door {
  readonly name: string;
  readonly route: AnyRoute;
  readonly pattern: RegExp;
  readonly params: readonly string[];
}

/** The routes of the supervisor for operators of this machine, over its socket. */
export class ControlChannel {
  readonly #ctx: SupervisorContext;
  readonly #handlers: Readonly<Record<string, unknown>>;
  readonly #doors: readonly Door[];

  constructor(ctx: SupervisorContext, handlers: Readonly<Record<string, unknown>>) {
    this.#ctx = ctx;
    this.#handlers = handlers;
    this.#doors = Object.entries(supervisor.routes as Readonly<Record<string, AnyRoute>>)
      .filter(([name]) => !NOT_HERE.has(name))
      .map(([name, route]) => doorOf(name, route))
      // A literal segment wins over a parameter.
      .sort((left, right) => left.params.length - right.params.length);
  }

  async answer(request: ControlRequest): Promise<ControlAnswer> {
    try {
      if (!admitsUser(request.uid, request.ownUid)) {
        this.#ctx.log.warn({ uid: request.uid, path: request.path }, 'somebody else knocked at the control socket');
        return refusal(403, 'peer_not_admitted', 'Only root and the owner of the platform are admitted here.');
      }
      return await this.#route(request, request.uid);
    } catch (error) {
      if (isProblem(error)) return { status: error.status, body: problemBody(error) };
      this.#ctx.log.error({ err: error, path: request.path }, 'a request of the control socket failed');
      return refusal(500, 'internal', 'Something went wrong on our side.');
    }
  }

  async #route({ method, path, query, body, signal }: ControlRequest, uid: number): Promise<ControlAnswer> {
    for (const { name, route, pattern, params } of this.#doors) {
      const match = route.method === method ? pattern.exec(path) : null;
      if (!match) continue;
      const faults = route.options.body ? this.#ctx.catalog.checkOf(route.options.body)(body ?? {}) : [];
      if (faults.length > 0)
        return {
          status: 400,
          body: {
            type: 'urn:platform:problem:captain:validation_failed',
            title: 'The request does not fit',
            status: 400,
            code: 'validation_failed',
            errors: faults,
          },
        };
      const handler = this.#handlers[name] as Handler;
      const request = {
        params: Object.fromEntries(params.map((param, at) => [param, decodeURIComponent(match[at + 1] as string)])),
        query: typed(query, route),
        body: body ?? {},
        socketUid: uid,
        signal,
      };
      const given = handler(request as never);
      if (route.door === 'stream') return { status: 200, items: given as AsyncIterable<StreamItem> };
      const value = await given;
      return isReply(value) ? { status: value.status ?? 200, body: value.value } : { status: route.options.status ?? 200, body: value };
    }
    return refusal(404, 'not_found', 'The control socket has nothing at this path.');
  }
}

function doorOf(name: string, route: AnyRoute): Door {
  const params: string[] = [];
  const pattern = route.path.replaceAll(/\{([A-Za-z_]+)\}/g, (_, param: string) => {
    params.push(param);
    return '([^/]+)';
  });
  return { name, route, params, pattern: new RegExp(`^${pattern}$`) };
}

/** Numbers of a query, read from their text. */
function typed(query: Readonly<Record<string, string>>, route: AnyRoute): Record<string, unknown> {
  const members = (route.options.query ?? {}) as Record<string, { type?: string }>;
  return Object.fromEntries(Object.entries(query).map(([name, text]) => [name, members[name]?.type === 'integer' ? Number(text) : text]));
}

const refusal = (status: number, code: string, detail: string): ControlAnswer => ({
  status,
  body: { type: `urn:platform:problem:captain:${code}`, title: detail, status, code, detail },
});
