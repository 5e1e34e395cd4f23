/** Who may hold an action: a person, a workload, or a workload acting for a person. */
export type Principal = 'user' | 'machine' | 'delegated';

/** An action is declared once; its key is scope, policy action and catalog entry (house 15). */
export interface Action {
  readonly title: string;
  /** Which built-in environment roles receive it when the service registers. */
  readonly grants?: 'read' | 'write' | 'admin';
  /** Every kind of principal when absent. */
  readonly principals?: readonly Principal[];
  /** Only with a certificate-bound identity (RFC 8705): whoever asks, or workloads alone. */
  readonly bound?: boolean | 'machine';
  /**
   * Workloads of the platform that are given it, for services that call others which they know only at run time: `['workflow']` may call
   * whoever answers steps, `['cron']` whoever has schedules.
   */
  readonly callers?: readonly string[];
}

/**
 * The action a caller needs, several of which any one is enough, or a written reason why any workload, any signed-in person or anybody with
 * a valid credential will do, or why nobody is asked. With `workload` a person passes with one of `or`.
 */
export type Gate<A extends string = string> =
  | A
  | { readonly any: readonly A[] }
  | { readonly workload: string; readonly or: readonly A[] }
  | { readonly signedIn: string }
  | { readonly authenticated: string }
  | { readonly public: string };

/** The actions of a gate: none where any signed-in person or any valid credential will do, `undefined` for a public one. */
export function gateActions(gate: Gate): readonly string[] | undefined {
  if (typeof gate === 'string') return [gate];
  if ('any' in gate) return gate.any;
  if ('workload' in gate) return gate.or;
  return 'signedIn' in gate || 'authenticated' in gate ? [] : undefined;
}
