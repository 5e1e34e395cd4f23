import type { AnyContract, AnyRoute } from '@platform/sdk';
import { gateActions } from '@platform/kernel/http/operation';
import { boot, type BootedHost } from '../boot.ts';
import type { BootOptions } from '../boot-options.ts';
import { sampleOf } from './sample.ts';

type Uses = Readonly<Record<string, AnyContract>>;
type NamedRoute = readonly [name: string, route: AnyRoute];

const ID = { type: 'string', format: 'uuid' };
const PARAMETER = /\{\*?([A-Za-z_]+)\}/g;
/** Parameters of a path, each as its schema wants it. */
export const sampleParams = ({ path, options }: AnyRoute): Record<string, string> =>
  Object.fromEntries([...path.matchAll(PARAMETER)].map(([, name = '']) => [name, String(sampleOf(options.params?.[name] ?? ID))]));
/** A path with something in the place of its parameters. */
export function sample(route: AnyRoute): string {
  const params = sampleParams(route);
  return route.path.replaceAll(PARAMETER, (_, name: string) => encodeURIComponent(params[name] as string));
}

/** The service that is judged, booted once for all of its promises. */
export class ConformanceSubject<C extends AnyContract = AnyContract, U extends Uses = Uses> {
  readonly contract: C;
  /** Its answers say what people hold, so that nobody can be given a scope behind its back. */
  readonly ownsAccess: boolean;
  readonly routes: readonly NamedRoute[];
  /** Those that somebody must be named for. */
  readonly gated: readonly NamedRoute[];
  readonly #uses: Uses;
  readonly #boot: () => Promise<BootedHost<C>>;
  #host: Promise<BootedHost<C>> | undefined;

  constructor(plugin: { readonly contract: C; readonly uses: U } & object, options: BootOptions<U>, ownsAccess: boolean) {
    this.contract = plugin.contract;
    this.ownsAccess = ownsAccess;
    this.routes = Object.entries(plugin.contract.routes as Record<string, AnyRoute>);
    this.gated = this.routes.filter(([, { door, options: route }]) => door === 'request' && gateActions(route.gate) !== undefined);
    this.#uses = plugin.uses;
    this.#boot = () => boot<C, U>(plugin, { ...options, away: true, partable: true });
  }

  async use(work: (host: BootedHost<C>) => Promise<void>): Promise<void> {
    this.#host ??= this.#boot();
    await work(await this.#host);
  }

  /** The schema of a consumed event, where its contract is one that the plugin uses. */
  payloadOf(event: string): object | undefined {
    return Object.values(this.#uses).flatMap(({ events }) => (events?.[event] ? [events[event].payload as object] : []))[0];
  }

  /** An action as a person of this service's vertical holds it. */
  scope(action: string): string {
    const { vertical } = this.contract.base;
    return vertical && vertical !== 'platform' ? `${vertical}:${action}` : action;
  }
}
