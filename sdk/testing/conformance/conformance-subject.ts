import { type AnyContract, type AnyRoute, gateActions } from '@platform/sdk';
import { boot, type BootedHost } from '../boot.ts';
import type { BootOptions } from '../boot-options.ts';
import { sampleOf } from './sample.ts';

/** What of the promises does not fit a service. A reason is a sentence; one that is not needed fails. */
export interface Exceptions<C extends AnyContract = AnyContract> {
  /** Its answers say what people hold, so that nobody can be given a scope behind its back. */
  readonly ownsAccess?: boolean;
  /** Makes what its pages list in an environment, through its own doors; tells the parameters of routes that list of one thing. */
  readonly rows?: (host: BootedHost<C>, envId: string) => Promise<Readonly<Record<string, Readonly<Record<string, string>>>> | void>;
  /** By the route that a page lists: why no row of it can be shown here. */
  readonly unlisted?: Readonly<Record<string, string>>;
  /** Why no request of a person can be held, neither by its body nor by a table that it reads. */
  readonly unheld?: string;
  /** By event: why its handler fails on a payload that the kit makes up. */
  readonly unhandled?: Readonly<Record<string, string>>;
}

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
  readonly exceptions: Exceptions;
  readonly routes: readonly NamedRoute[];
  /** Those that somebody must be named for. */
  readonly gated: readonly NamedRoute[];
  readonly #uses: Uses;
  readonly #boot: () => Promise<BootedHost<C>>;
  #host: Promise<BootedHost<C>> | undefined;

  constructor(plugin: { readonly contract: C; readonly uses: U } & object, options: BootOptions<U>, exceptions: Exceptions<C>) {
    this.contract = plugin.contract;
    this.exceptions = exceptions as Exceptions;
    this.routes = Object.entries(plugin.contract.routes as Record<string, AnyRoute>);
    this.gated = this.routes.filter(([, { door, options: route }]) => door === 'request' && gateActions(route.gate) !== undefined);
    this.#uses = plugin.uses;
    this.#boot = () => boot<C, U>(plugin, { ...options, away: true, partable: true });
  }

  get ownsAccess(): boolean {
    return this.exceptions.ownsAccess ?? false;
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
