import type { FieldFault } from '@platform/sdk';
import { type Static, Type } from '@platform/sdk/contract';
import type { Ctx } from '../context.ts';

const Method = Type.Union([Type.Literal('GET'), Type.Literal('POST'), Type.Literal('PUT'), Type.Literal('DELETE')]);
/** G-BFF-06. */
const ActionDef = Type.Object({
  action: Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_.:-]{0,199}$' }),
  service: Type.String({ pattern: '^[a-z][a-z0-9]{0,30}$' }),
  method: Method,
  path: Type.String({ pattern: '^(/[A-Za-z0-9._~-]+|/\\{[A-Za-z_][A-Za-z0-9_]*\\})+$', maxLength: 500 }),
  params_schema: Type.Object({}, { additionalProperties: true }),
  policy_action: Type.String({ pattern: '^[a-z][a-z0-9_:]{0,199}$' }),
  target_env: Type.Optional(Type.Boolean()),
});
type ActionDef = Static<typeof ActionDef>;

/** One action as it was registered, and a check of its parameters. */
export interface RegisteredAction extends ActionDef {
  readonly vertical: string;
  readonly faults: (params: unknown) => readonly FieldFault[];
}
interface Known {
  readonly actions: ReadonlyMap<string, RegisteredAction>;
  readonly at: number;
}

const FRESH_MS = 30_000;
const STALE_MS = 300_000;
const PAGE = 200;

/** What can be dispatched, from what services registered (GWY-029; G-BFF-06). Kept 30 s, and longer only while the registry is away. */
export class ActionRegistry {
  readonly #ctx: Ctx;
  readonly #isDef: (value: unknown) => readonly FieldFault[];
  #known: Known | undefined;
  #loading: Promise<Known> | undefined;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#isDef = ctx.catalog.checkOf(ActionDef);
  }

  async find(action: string): Promise<RegisteredAction | undefined> {
    const age = this.#now() - (this.#known?.at ?? 0);
    if (this.#known && age < FRESH_MS) return this.#known.actions.get(action);
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    try {
      return (await this.#loading).actions.get(action);
    } catch (cause) {
      if (this.#known && age < STALE_MS) return this.#known.actions.get(action);
      throw this.#ctx.problem('not_ready', { cause, detail: 'The actions are not known yet.', headers: { 'retry-after': '2' } });
    }
  }

  /** A service came, or says something else. */
  forget(): void {
    this.#known = undefined;
    this.#loading = undefined;
  }

  async #load(): Promise<Known> {
    const actions = new Map<string, RegisteredAction>();
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const { items, next_cursor: next } = await this.#ctx.services.registry.listVerticals({
        query: { limit: PAGE, ...(cursor ? { cursor } : {}) },
      });
      for (const { service, vertical, actions: given } of items) for (const def of given) this.#add(actions, def, { service, vertical });
      cursor = next;
    }
    this.#known = { actions, at: this.#now() };
    return this.#known;
  }

  /**
   * A service speaks for itself: what one registers never calls another, and what calls itself like a part of the platform is not heard.
   */
  #add(actions: Map<string, RegisteredAction>, given: unknown, { service, vertical }: { service: string; vertical: string }): void {
    const def = given as ActionDef;
    try {
      if (this.#isDef(given).length > 0) throw new Error('it is malformed');
      if (def.service !== service || !def.action.startsWith(`${service}:`)) throw new Error('it is of another service');
      if (this.#verticalOf(service) !== undefined && this.#verticalOf(service) !== vertical)
        throw new Error('the service belongs to another vertical');
      actions.set(def.action, {
        ...def,
        vertical,
        faults: this.#ctx.catalog.checkOf(def.params_schema, { base: '/params', foreign: true }),
      });
    } catch (error) {
      this.#ctx.log.warn({ vertical, registered_by: service, err: error }, 'a registered action is left out');
    }
  }

  #verticalOf(service: string): string | undefined {
    return this.#ctx.catalog.manifests().find(({ id }) => id === service)?.vertical;
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }
}
