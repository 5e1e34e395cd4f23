import { METHODS } from 'node:http';
import Router from '@koa/router';
import type { Middleware, Next, ParameterizedContext } from 'koa';

export interface Match<T> {
  readonly value: T;
  readonly params: Readonly<Record<string, string>>;
}

interface Entry<T> {
  readonly method: string;
  readonly shape: string;
  readonly path: string;
  /** Names of the parameters, in their order. */
  readonly names: readonly string[];
  /** One digit for each segment: 0 literal, 1 parameter, 2 remainder. */
  readonly rank: string;
  readonly rest: boolean;
  readonly value: T;
}

type Layer = Router['stack'][number];
type Answer<T> = (ctx: ParameterizedContext, match: Match<T>) => Promise<void>;

/**
 * The doors of one service in one Koa router. A template's literal segments win over `{name}`, and those over `{*rest}`, in whatever order
 * they are declared; the router takes the first that fits, so they are given to it in that order. What its scan costs: `npm run bench --
 * router`.
 */
export class RouteTable<T> {
  readonly #entries: Entry<T>[] = [];
  readonly #byLayer = new Map<Layer, Entry<T>>();
  readonly #answer: Answer<T>;
  #router: Router | undefined;

  constructor(answer: Answer<T> = async () => undefined) {
    this.#answer = answer;
  }

  /** Adds a template such as `/v1/org/{id}`; `ANY` takes every method. A second entry for the same method and shape is refused. */
  add(method: string, template: string, value: T): void {
    const segments = template.split('/').slice(1);
    const parsed = segments.map(segment => /^\{(\*?)([A-Za-z_]+)\}$/.exec(segment) ?? undefined);
    const path = segments.map((segment, index) => `/${pattern(segment, parsed[index])}`).join('');
    const shape = segments.map((segment, index) => `/${parsed[index] ? `{${parsed[index]?.[1]}}` : segment}`).join('');
    if (this.#entries.some(entry => entry.method === method && entry.shape === shape))
      throw new Error(`two routes answer ${method} ${template}`);
    const rank = parsed.map(part => (part ? (part[1] ? '2' : '1') : '0')).join('');
    this.#entries.push({ method, shape, path, rank, value, names: parsed.flatMap(part => part?.[2] ?? []), rest: rank.endsWith('2') });
    this.#router = undefined;
  }

  /** The middleware that answers what is declared here, and leaves the rest to the next one. */
  routes(): Middleware {
    return this.#built().routes() as unknown as Middleware;
  }

  /**
   * The match, or the methods the path would take (and what would take it as a remainder), or nothing. Malformed percent-encoding is
   * `'malformed'`.
   */
  find(method: string, path: string): Match<T> | { methods: string[]; around?: Match<T> } | 'malformed' | undefined {
    if (malformed(path)) return 'malformed';
    const found = this.#built().match(path, method);
    const fitting = found.path.map(layer => this.#byLayer.get(layer) as Entry<T>);
    const chosen = found.pathAndMethod[0];
    const match = chosen && this.#matchOf(chosen, chosen.params(path, chosen.captures(path)));
    const refused = refusedMethods(fitting, chosen && this.#byLayer.get(chosen));
    if (refused) return { methods: refused, ...(match ? { around: match } : {}) };
    return match;
  }

  #built(): Router {
    if (this.#router) return this.#router;
    const router = new Router({ strict: true, sensitive: true });
    this.#byLayer.clear();
    for (const entry of this.#entries.toSorted(nearestFirst)) {
      const layer = router.register(entry.path, entry.method === 'ANY' ? METHODS : [entry.method], (ctx, next) =>
        this.#enter(ctx as never, next, entry),
      ) as Layer;
      this.#byLayer.set(layer, entry);
    }
    this.#router = router;
    return router;
  }

  async #enter(
    ctx: ParameterizedContext & { matched?: Layer[]; params: Record<string, string> },
    next: Next,
    entry: Entry<T>,
  ): Promise<void> {
    const fitting = (ctx.matched ?? []).map(layer => this.#byLayer.get(layer) as Entry<T>);
    if (refusedMethods(fitting, entry)) return next();
    await this.#answer(ctx, { value: entry.value, params: paramsOf(entry, ctx.params) });
  }

  #matchOf(layer: Layer, params: Record<string, string>): Match<T> {
    const entry = this.#byLayer.get(layer) as Entry<T>;
    return { value: entry.value, params: paramsOf(entry, params) };
  }
}

/** By how much of its path is literal, and a method before every method. */
function nearestFirst<T>(a: Entry<T>, b: Entry<T>): number {
  if (a.rank !== b.rank) return a.rank < b.rank ? -1 : 1;
  return Number(a.method === 'ANY') - Number(b.method === 'ANY');
}

/** True when a path is not well encoded. */
export function malformed(path: string): boolean {
  if (!path.includes('%')) return false;
  try {
    decodeURIComponent(path);
    return false;
  } catch {
    return true;
  }
}

/**
 * The methods that a path takes when it does not take this one. A path that is declared whole is not the remainder of another, whatever the
 * method (F-28).
 */
function refusedMethods<T>(fitting: readonly Entry<T>[], chosen: Entry<T> | undefined): string[] | undefined {
  if (chosen && !chosen.rest) return undefined;
  const whole = fitting.filter(({ rest }) => !rest);
  if (chosen && whole.length === 0) return undefined;
  const told = whole.length > 0 ? whole : fitting;
  return told.length === 0 ? undefined : [...new Set(told.map(({ method }) => method))];
}

/** A remainder may be empty, which the router leaves out. */
function paramsOf<T>({ names }: Entry<T>, params: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(names.map(name => [name, params[name] ?? '']));
}

function pattern(segment: string, parsed: RegExpExecArray | undefined): string {
  if (!parsed) return segment.replaceAll(/[{}()[\]+?!:*\\]/g, String.raw`\$&`);
  return parsed[1] ? `{*${parsed[2]}}` : `:${parsed[2]}`;
}
