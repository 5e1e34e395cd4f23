import { Problem } from '../../api/gateway/problem.ts';
import type { Bootstrap, Env } from '../../api/registry-api.ts';

export type Sleep = (ms: number) => Promise<void>;

/** G1: a new member's groups may still be settling. */
export const MEMBERSHIP_WAITS = [500, 1000, 2000, 4000];
/** G2 */
export const ENV_WAITS = [500, 1000, 2000];

export const sleep: Sleep = ms => new Promise(done => setTimeout(done, ms));

export type Membership =
  | { readonly kind: 'member'; readonly bootstrap: Bootstrap }
  /** Without a bootstrap when even that was refused: the account holds nothing at all. */
  | { readonly kind: 'not_member'; readonly bootstrap?: Bootstrap }
  /** Nothing was proven either way: the console renders and the services decide. */
  | { readonly kind: 'unknown'; readonly problem: Problem };

/** G1 */
export async function settleMembership(
  load: () => Promise<Bootstrap>,
  wait: Sleep = sleep,
  waits: readonly number[] = MEMBERSHIP_WAITS,
): Promise<Membership> {
  let last: Membership | undefined;
  for (const pause of [...waits, undefined]) {
    try {
      const bootstrap = await load();
      if (bootstrap.platform_admin || bootstrap.orgs.length > 0) return { kind: 'member', bootstrap };
      last = { kind: 'not_member', bootstrap };
    } catch (error) {
      const problem = Problem.of(error);
      last = problem.denied ? { kind: 'not_member' } : { kind: 'unknown', problem };
    }
    if (pause !== undefined) await wait(pause);
  }
  return last as Membership;
}

export type EnvAnswer =
  | { readonly kind: 'found'; readonly env: Env }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unknown'; readonly problem: Problem };

/** G2: only a 404 blocks. */
export async function fetchEnv(load: () => Promise<Env>, wait: Sleep = sleep): Promise<EnvAnswer> {
  let problem = Problem.of('not asked');
  for (const pause of [...ENV_WAITS, undefined]) {
    try {
      return { kind: 'found', env: await load() };
    } catch (error) {
      problem = Problem.of(error);
      if (problem.absent) return { kind: 'absent' };
      // A refusal is an answer, and repeating the question does not change it.
      if (problem.denied) break;
    }
    if (pause !== undefined) await wait(pause);
  }
  return { kind: 'unknown', problem };
}

/** G3: only an explicit `false` disables. */
export function featureEnabled(features: Readonly<Record<string, boolean>>, service: string): boolean {
  return features[service] !== false;
}
