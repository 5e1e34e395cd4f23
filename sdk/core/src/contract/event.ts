import type { TSchema } from 'typebox';

/** An event the service may emit. Its name has four segments: vertical, service, resource, operation. */
export interface EventDef<S extends TSchema = TSchema> {
  readonly title: string;
  readonly payload: S;
  /** Stream family; the service's own when absent. */
  readonly family?: string;
  /** Every page of the console hears it, whichever is shown: it changes where one can go, or what the frame shows. */
  readonly everyPage?: true;
}

/** Declares an event with the schema of its payload. */
export function event<const S extends TSchema>(
  title: string,
  payload: S,
  options: Pick<EventDef, 'family' | 'everyPage'> = {},
): EventDef<S> {
  return { title, payload, ...options };
}

/** An event the service wants to hear, by name and stream family. */
export interface Subscription<N extends string = string> {
  readonly event: N;
  readonly family: string;
  /** `fleet`: one process of the service handles it. `process`: every process does (policy, sessions). */
  readonly delivery?: 'fleet' | 'process';
  /**
   * Member of the payload by which order counts: events of one environment with the same value are handled one after another as they came,
   * by one process of the fleet; one that fails holds back those behind it until it is handled or a dead letter. Not with `process`.
   */
  readonly ordered?: string;
  /**
   * How many environments are handled at once in a process; events of one come one after another. One at a time when absent. Not with
   * `ordered`.
   */
  readonly concurrency?: number;
  /**
   * Seconds between attempts to reach the bus again, where a document fixes them; from a fifth of a second up to five, by how often it
   * failed, when absent.
   */
  readonly reconnect_s?: number;
  /** What the handler needs of the payload: a producer whose schema no longer promises it is not loaded beside this one (check E071). */
  readonly expects?: TSchema;
}

/** Declares a subscription; the payload's type follows from the contracts the plugin uses. */
export function subscribe<const N extends string>(event: N, options: Omit<Subscription, 'event'>): Subscription<N> {
  return { event, ...options };
}
