import type { AnyContract, Client, ProcessHost } from '@platform/sdk';
import type { Manifest } from '@platform/kernel/base/manifest';
import type { TestStores } from './stores/stores.ts';

/** Answers of other services, typed by their contracts: what is not stubbed and gets called throws its own name. */
export type Stubs<U extends Readonly<Record<string, AnyContract>>> = { readonly [K in keyof U]?: Partial<Client<U[K]>> };

export interface BootOptions<U extends Readonly<Record<string, AnyContract>>> {
  readonly stubs?: Stubs<U>;
  readonly environment?: Readonly<Record<string, string>>;
  /** Further manifests the process knows: the catalog a service would see in production. */
  readonly manifests?: readonly Manifest[];
  /** Real services in the same process, where the plugin's neighbours matter as they are. */
  readonly beside?: readonly { readonly plugin: object; readonly environment?: Readonly<Record<string, string>> }[];
  /** Services of `uses`, by id, that are not stubbed: another booted host on the same stores serves them over the wire, or nobody does. */
  readonly elsewhere?: readonly string[];
  /** The machine's processes, for the plugin that watches over them. */
  readonly processes?: ProcessHost;
  /** Stores to use instead of fresh ones; they stay the caller's. */
  readonly stores?: TestStores;
  /** Services that are not stubbed are not running, as the platform answers for those; else a call of one throws its name. */
  readonly away?: boolean;
  /** Both stores are reached by way of a relay each, so that a test can cut them off: {@link BootedHost.part}. */
  readonly partable?: boolean;
  /** What the log keeps; warnings and worse unless said otherwise. */
  readonly logLevel?: 'debug' | 'info' | 'warn';
}
