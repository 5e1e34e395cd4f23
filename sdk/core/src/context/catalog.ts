import type { Action } from '../contract/action.ts';
import type { Manifest } from '../contract/manifest.ts';
import type { FieldFault } from '../contract/problem.ts';

/** A service that is registered, no matter who brought it, and where its life stands. */
export interface LivingService {
  readonly service: string;
  readonly vertical: string;
  readonly label: string;
  /** Another one says that the plugin changed, or what its vertical registered. */
  readonly version: string;
  /**
   * known: a machine found its plugin · enabled: it is registered · draining: somebody takes it out, and it ends what it has begun · gone:
   * nothing of it is left.
   */
  readonly life: 'known' | 'enabled' | 'draining' | 'gone';
  /** When it came to this. */
  readonly since: string;
  readonly stream_families: readonly string[];
}

/** What there is on this platform: the code that this process trusts, and every service that is registered. */
export interface Catalog {
  /** Of the platform's own services, and of the vertical that this process runs: the same in every process mode. */
  manifests(): readonly Manifest[];
  /**
   * Every registered service as it is now, then again whenever something changed; a slow reader gets the latest. It waits while the
   * registry does not answer, and ends with the service. The contract must use `sys` with `sys:read`.
   */
  changes(): AsyncIterable<readonly LivingService[]>;
  /** Does something with each of `changes`, one after another. What fails is logged, and done again with the next look (15 s). */
  follow(work: (services: readonly LivingService[]) => Promise<void> | void): void;
  actions(): readonly {
    scope: string;
    service: string;
    vertical: string;
    title: string;
    admin: boolean;
    grants: Action['grants'] | undefined;
    machineOnly: boolean;
  }[];
  /**
   * A check by the schema of a declared event: no fault when the value fits, each with a JSON pointer that begins with `base` when not.
   * `foreign` for a schema that no loaded manifest has: it is interpreted, and its patterns do not count. Make it once and keep it.
   */
  checkOf(schema: object, options?: { base?: string; foreign?: boolean }): (value: unknown) => readonly FieldFault[];
}
