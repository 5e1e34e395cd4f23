import { isProblem } from '@platform/sdk';
import type { Ctx } from './context.ts';

const FRESH_MS = 30_000;
const STALE_MS = 300_000;
const LIMIT = 5_000;

interface Known {
  readonly disabled: ReadonlySet<string>;
  readonly at: number;
}

/** Which services an environment has turned off. Kept 30 s, forgotten the moment the registry says that something changed. */
export class ServiceEnablement {
  readonly #ctx: Ctx;
  readonly #known = new Map<string, Known>();
  readonly #loading = new Map<string, Promise<Known>>();

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** Throws `service_disabled`, or `target_denied` for an environment that does not exist: nobody learns which. */
  async require(envId: string, service: string): Promise<void> {
    const { disabled } = await this.#of(envId);
    if (disabled.has(service)) throw this.#ctx.problem('service_disabled', { detail: `${service} is turned off here; an administrator of the environment can turn it on.` });
  }

  /** Something changed in this environment, or anywhere. */
  forget(envId: string | undefined): void {
    if (envId === undefined) {
      this.#known.clear();
      this.#loading.clear();
    } else {
      this.#known.delete(envId);
      // An answer that is on its way may be the old one.
      this.#loading.delete(envId);
    }
  }

  async #of(envId: string): Promise<Known> {
    const known = this.#known.get(envId);
    const age = this.#now() - (known?.at ?? 0);
    if (known && age < FRESH_MS) return known;
    try {
      return await this.#load(envId);
    } catch (cause) {
      if (isProblem(cause) && cause.status < 500) throw this.#ctx.problem('target_denied', { cause });
      // Nothing can have been switched while the registry is away.
      if (known && age < STALE_MS) return known;
      throw this.#ctx.problem('not_ready', { cause, detail: 'The services of the environment are not known yet.', headers: { 'retry-after': '2' } });
    }
  }

  #load(envId: string): Promise<Known> {
    const running = this.#loading.get(envId);
    if (running) return running;
    const loading = this.#ctx.services.registry
      .listServices({ params: { env_id: envId } })
      .then(({ services }) => {
        const known = { disabled: new Set(services.filter(({ enabled }) => !enabled).map(({ service }) => service)), at: this.#now() };
        if (this.#loading.get(envId) === loading) {
          this.#known.set(envId, known);
          if (this.#known.size > LIMIT) this.#known.delete(this.#known.keys().next().value as string);
        }
        return known;
      })
      .finally(() => this.#loading.get(envId) === loading && this.#loading.delete(envId));
    this.#loading.set(envId, loading);
    return loading;
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }
}
