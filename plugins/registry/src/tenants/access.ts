import { type Caller, isProblem, SYSTEM } from '@platform/sdk';
import type { Env, Org } from '../../contract/schema/tenant.ts';
import type { Ctx } from '../context.ts';
import { isUuid } from '../uuid.ts';

export type Level = 'owner' | 'admin' | 'viewer';
/** `platform:org:` and `platform:env:` are as long as each other. */
const PREFIX = 'platform:org:'.length;
const ID = 36;
const LEVELS: ReadonlyMap<string, Level> = new Map([
  [':owners', 'owner'],
  [':admins', 'admin'],
  [':viewers', 'viewer'],
]);
const RANK: Readonly<Record<Level, number>> = { owner: 3, admin: 2, viewer: 1 };

/** Who may touch which organization: proven by live groups whose names carry the org id, never by roles (doc1, Authentication 3; C5). */
export class Access {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** The organization, when the caller may reach it. A stranger learns nothing about its existence. */
  async org(caller: Caller, orgId: string, needed: Level = 'viewer'): Promise<Org> {
    const [org] = isUuid(orgId) ? await this.#ctx.db.sql<Org[]>`select * from orgs where org_id = ${orgId}` : [];
    if (caller.platformAdmin || (caller.kind === 'machine' && caller.vertical === 'platform')) {
      if (!org) throw this.#ctx.problem('org_not_found', { detail: `No organization ${orgId}.` });
      return org;
    }
    if (!org || !(await this.#reaches(caller, org, needed))) throw this.#notMember();
    return org;
  }

  /** The environment, when the caller may reach it through its organization or its own groups. */
  async env(caller: Caller, envId: string, needed: Level = 'viewer'): Promise<Env & { org: Org }> {
    const [env] = isUuid(envId) ? await this.#ctx.db.sql<Env[]>`select * from envs where env_id = ${envId}` : [];
    const trusted = caller.platformAdmin || (caller.kind === 'machine' && caller.vertical === 'platform');
    if (!env) throw trusted ? this.#ctx.problem('env_not_found', { detail: `No environment ${envId}.` }) : this.#notMember();
    const [org] = await this.#ctx.db.sql<[Org]>`select * from orgs where org_id = ${env.org_id}`;
    if (trusted) return { ...env, org };
    const levels = await this.levels(caller);
    const own = levels.get(envId);
    if ((own && RANK[own] >= RANK[needed]) || (await this.#reaches(caller, org, needed))) return { ...env, org };
    throw this.#notMember();
  }

  /** Highest level per organization and environment, from the identity service's live listing. */
  async levels(caller: Caller): Promise<Map<string, Level>> {
    if (caller.kind === 'machine') return new Map();
    if (!caller.userId) throw this.#notMember();
    const levels = new Map<string, Level>();
    for (const { name } of (await this.#groups(caller.userId)).groups) {
      // Somebody may be in thousands: cut, not matched.
      const level = LEVELS.get(name.slice(PREFIX + ID));
      if (!level || !(name.startsWith('platform:org:') || name.startsWith('platform:env:'))) continue;
      const id = name.slice(PREFIX, PREFIX + ID);
      if (!isUuid(id)) continue;
      const known = levels.get(id);
      if (known === undefined || RANK[level] > RANK[known]) levels.set(id, level);
    }
    return levels;
  }

  async #groups(userId: string) {
    try {
      return await this.#ctx.services.identity.userGroups({ params: { user_id: userId } });
    } catch (cause) {
      // An outage must never look like «member of nothing» (G-SYS-11).
      if (isProblem(cause) && cause.status < 500) throw this.#notMember();
      throw this.#ctx.problem('identity_unavailable', { cause, headers: { 'retry-after': '2' } });
    }
  }

  async #reaches(caller: Caller, org: Org, needed: Level): Promise<boolean> {
    if (caller.kind === 'delegated' && caller.envId && caller.envId !== SYSTEM.envId && needed !== 'owner') {
      const [env] = await this.#ctx.db.sql<{ org_id: string }[]>`select org_id from envs where env_id = ${caller.envId}`;
      if (env?.org_id === org.org_id) return true;
    }
    const level = (await this.levels(caller)).get(org.org_id);
    return level !== undefined && RANK[level] >= RANK[needed];
  }

  #notMember() {
    return this.#ctx.problem('not_org_member', { detail: 'caller is not a member of the org' });
  }
}
