import { type Caller, isId, isProblem, type ProblemError, SYSTEM } from '@platform/sdk';
import type { Env, Org } from '../../contract/schema/tenant.ts';
import type { Ctx } from '../context.ts';

export type Level = 'owner' | 'admin' | 'viewer';
const RANK: Readonly<Record<Level, number>> = { owner: 3, admin: 2, viewer: 1 };

/** Highest level per tenant. */
export interface Levels {
  readonly orgs: ReadonlyMap<string, Level>;
  readonly envs: ReadonlyMap<string, Level>;
}

/** Who may touch which organization: proven by live groups whose names carry the org id, never by roles (doc1, Authentication 3; C5). */
export class Access {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** The organization, when the caller may reach it. A stranger learns nothing about its existence. */
  async org(caller: Caller, orgId: string, needed: Level = 'viewer'): Promise<Org> {
    const [org] = isId(orgId) ? await this.#ctx.db.sql<Org[]>`select * from orgs where org_id = ${orgId}` : [];
    if (!org) throw this.gone(caller, orgId);
    await this.reach(caller, orgId, needed);
    return org;
  }

  /** The environment, when the caller may reach it through its organization or its own groups. */
  async env(caller: Caller, envId: string, needed: Level = 'viewer'): Promise<Env & { org: Org }> {
    const [env] = isId(envId) ? await this.#ctx.db.sql<Env[]>`select * from envs where env_id = ${envId}` : [];
    const [org] = env ? await this.#ctx.db.sql<Org[]>`select * from orgs where org_id = ${env.org_id}` : [];
    // Both may go between the two questions.
    if (!env || !org)
      throw isTrusted(caller) ? this.#ctx.problem('env_not_found', { detail: `No environment ${envId}.` }) : this.#notMember();
    if (isTrusted(caller)) return { ...env, org };
    if (await this.#within(caller, env.org_id, needed)) return { ...env, org };
    const { orgs, envs } = await this.levels(caller, envId, env.org_id);
    if (!isEnough(envs.get(envId), needed) && !isEnough(orgs.get(env.org_id), needed)) throw this.#notMember();
    return { ...env, org };
  }

  /** Refuses a caller that may not reach an organization, whatever became of it. */
  async reach(caller: Caller, orgId: string, needed: Level): Promise<void> {
    if (isTrusted(caller) || (await this.#within(caller, orgId, needed))) return;
    if (!isEnough((await this.levels(caller, orgId)).orgs.get(orgId), needed)) throw this.#notMember();
  }

  /** Refuses a person who reaches neither the environment nor its organization; a workload resolves every tenant (G-SYS-10, F-06). */
  async reachEnv(caller: Caller, env: Pick<Env, 'env_id' | 'org_id'>): Promise<void> {
    if (caller.kind === 'machine' || isTrusted(caller) || env.env_id === SYSTEM.envId || (await this.#within(caller, env.org_id, 'viewer')))
      return;
    const { orgs, envs } = await this.levels(caller, env.env_id, env.org_id);
    if (!orgs.has(env.org_id) && !envs.has(env.env_id)) throw this.#notMember();
  }

  /** A record that is not there: a person who could not have reached it learns nothing from the answer. */
  missing(caller: Caller, absent: ProblemError): ProblemError {
    return caller.kind === 'machine' || isTrusted(caller) ? absent : this.#notMember();
  }

  /** An organization that is not there, to somebody who would have reached it. */
  gone(caller: Caller, orgId: string) {
    return isTrusted(caller) ? this.#ctx.problem('org_not_found', { detail: `No organization ${orgId}.` }) : this.#notMember();
  }

  /** From the identity service's live listing; of these tenants alone where some are named. */
  async levels(caller: Caller, ...tenants: readonly string[]): Promise<Levels> {
    if (caller.kind === 'machine') return { orgs: new Map(), envs: new Map() };
    if (!caller.userId) throw this.#notMember();
    const { org, env } = await this.#tenants(caller.userId, tenants);
    return { orgs: highest(org), envs: highest(env) };
  }

  async #tenants(userId: string, tenants: readonly string[]) {
    try {
      return await this.#ctx.services.identity.tenantsOf({
        params: { user_id: userId },
        query: tenants.length === 0 ? {} : { tenants: tenants.join() },
      });
    } catch (cause) {
      // An outage must never look like «member of nothing» (G-SYS-11).
      if (isProblem(cause) && cause.status < 500) throw this.#notMember();
      throw this.#ctx.problem('identity_unavailable', { cause, headers: { 'retry-after': '2' } });
    }
  }

  /** A workload that acts for a person in an environment is at home in its organization, and owns nothing there. */
  async #within(caller: Caller, orgId: string, needed: Level): Promise<boolean> {
    if (caller.kind !== 'delegated' || !caller.envId || caller.envId === SYSTEM.envId || needed === 'owner') return false;
    const [env] = await this.#ctx.db.sql<{ org_id: string }[]>`select org_id from envs where env_id = ${caller.envId}`;
    return env?.org_id === orgId;
  }

  #notMember() {
    return this.#ctx.problem('not_org_member', { detail: 'caller is not a member of the org' });
  }
}

/** The platform's own: its administrators and its workloads reach every tenant. */
export const isTrusted = (caller: Caller): boolean => caller.platformAdmin || (caller.kind === 'machine' && caller.vertical === 'platform');

const isEnough = (level: Level | undefined, needed: Level): boolean => level !== undefined && RANK[level] >= RANK[needed];

function highest({
  owners,
  admins,
  viewers,
}: {
  owners: readonly string[];
  admins: readonly string[];
  viewers: readonly string[];
}): Map<string, Level> {
  const levels = new Map<string, Level>();
  for (const id of viewers) levels.set(id, 'viewer');
  for (const id of admins) levels.set(id, 'admin');
  for (const id of owners) levels.set(id, 'owner');
  return levels;
}
