import type { Runnable } from '@platform/sdk';
import type { Manifest } from '../../base/manifest.ts';

/** A service that this machine can run, and where its code lies. */
export interface RunnableService {
  readonly manifest: Manifest;
  readonly directory: string;
  readonly wanted: boolean;
  readonly within: boolean;
  readonly placement: readonly string[];
  readonly singleton: boolean;
  readonly minInstances: number;
  /** Variables that the operator lets its process inherit besides what its contract names. */
  readonly variables?: readonly string[];
}

/** The services that this machine can run, of which more may come to be known. */
export class RunnableServices {
  readonly #known = new Map<string, RunnableService>();
  readonly #listeners = new Set<(service: Runnable) => void>();
  #list: readonly Runnable[] | undefined;
  #withdrawn: ReadonlySet<string> = new Set();

  constructor(services: readonly RunnableService[]) {
    for (const service of services) this.#known.set(service.manifest.id, service);
  }

  get(id: string): RunnableService | undefined {
    return this.#known.get(id);
  }

  /** The same array until something of it changes. */
  list(): readonly Runnable[] {
    return (this.#list ??= [...this.#known.values()].map(service => this.#runnable(service)));
  }

  add(service: RunnableService): void {
    this.#known.set(service.manifest.id, service);
    this.#list = undefined;
    this.#tell(service);
  }

  /** Of a vertical, as their folders were read. */
  manifestsOf(vertical: string): readonly Manifest[] {
    return [...this.#known.values()].map(({ manifest }) => manifest).filter(manifest => manifest.vertical === vertical);
  }

  /** Those that somebody took out of the platform, until they are brought back. */
  withdraw(withdrawn: ReadonlySet<string>): void {
    const changed = [...this.#known.values()].filter(({ manifest: { id } }) => withdrawn.has(id) !== this.#withdrawn.has(id));
    this.#withdrawn = withdrawn;
    if (changed.length === 0) return;
    this.#list = undefined;
    for (const service of changed) this.#tell(service);
  }

  onChange(listener: (service: Runnable) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  #tell(service: RunnableService): void {
    for (const listener of this.#listeners) listener(this.#runnable(service));
  }

  #runnable({ manifest, wanted, within, placement, singleton, minInstances }: RunnableService): Runnable {
    const { id, title, vertical, version } = manifest;
    return {
      service_type: id,
      title,
      vertical,
      version,
      start_priority: manifest.placement.tier,
      placement,
      singleton,
      min_instances: minInstances,
      wanted,
      withdrawn: this.#withdrawn.has(id),
      within,
    };
  }
}
