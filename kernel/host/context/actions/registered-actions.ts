import { type FieldFault, type Logger, type RegisteredAction, type Static, Type } from '@platform/sdk';
import { TimedCache } from '../../../base/cache.ts';
import type { Clock } from '../../../base/clock.ts';
import { kernelProblem } from '../../../base/kernel-problem.ts';
import type { Manifest } from '../../../base/manifest.ts';
import { foreignCheck } from '../../../http/schema/foreign-schema.ts';
import { Validator } from '../../../http/schema/schema.ts';

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
export interface KnownAction extends RegisteredAction, Pick<ActionDef, 'params_schema' | 'target_env'> {
  readonly faults: (params: unknown) => readonly FieldFault[];
}
/** One service as the registry lists it. */
export interface Registration {
  readonly service: string;
  readonly vertical: string;
  readonly actions: readonly unknown[];
}
export interface RegisteredActionsParts {
  /** Asks the registry for every service that is registered. */
  readonly read: () => Promise<readonly Registration[]>;
  readonly manifests: () => readonly Manifest[];
  readonly clock: Clock;
  readonly log: Logger;
}
type Actions = ReadonlyMap<string, KnownAction>;

const FRESH_MS = 30_000;
const STALE_MS = 300_000;
const definition = new Validator(ActionDef);

/** What services registered for others to call (GWY-029; G-BFF-06). Kept 30 s, and longer only while the registry is away. */
export class RegisteredActions {
  readonly #parts: RegisteredActionsParts;
  readonly #known: TimedCache<Actions>;

  constructor(parts: RegisteredActionsParts) {
    this.#parts = parts;
    this.#known = new TimedCache({ max: 1, ttl: FRESH_MS, stale: { ms: STALE_MS } }, () => parts.clock.now().getTime());
  }

  /** Throws `not_ready` while nothing is known. */
  async find(action: string): Promise<KnownAction | undefined> {
    try {
      return (await this.#known.get('', () => this.#load())).get(action);
    } catch (cause) {
      throw kernelProblem('not_ready', { cause, detail: 'The actions are not known yet. Try again in a moment.' });
    }
  }

  /** A service came, or says something else: what is being read now may not have it. */
  forget(): void {
    this.#known.forget();
  }

  async #load(): Promise<Actions> {
    const actions = new Map<string, KnownAction>();
    for (const { service, vertical, actions: given } of await this.#parts.read())
      for (const def of given) this.#add(actions, def, { service, vertical });
    return actions;
  }

  /**
   * A service speaks for itself: what one registers never calls another, and what calls itself like a part of the platform is not heard.
   */
  #add(actions: Map<string, KnownAction>, given: unknown, { service, vertical }: Omit<Registration, 'actions'>): void {
    try {
      if (!definition.check(given)) throw new Error('it is malformed');
      const def = given as ActionDef;
      if (def.service !== service || !def.action.startsWith(`${service}:`)) throw new Error('it is of another service');
      const own = this.#parts.manifests().find(({ id }) => id === service);
      if (own !== undefined && own.vertical !== vertical) throw new Error('the service belongs to another vertical');
      actions.set(def.action, { ...def, vertical, faults: foreignCheck(def.params_schema, '/params') });
    } catch (error) {
      this.#parts.log.warn({ vertical, registered_by: service, err: error }, 'a registered action is left out');
    }
  }
}
