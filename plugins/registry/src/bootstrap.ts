import { createHash } from 'node:crypto';
import { type RequestOf, SYSTEM } from '@platform/sdk';
import type { Env, Org } from '../contract/schema/tenant.ts';
import type { Access, Level } from './tenants/access.ts';
import type { Contract, Ctx } from './context.ts';
import type { Enablement } from './enablement.ts';

const MAX_ORGS = 1_000;

/** The first thing a console asks: what the caller can reach, and which services the environment uses (G-SYS-11). */
export class Bootstrap {
  readonly #ctx: Ctx;
  readonly #access: Access;
  readonly #enablement: Enablement;

  constructor(ctx: Ctx, { access, enablement }: { access: Access; enablement: Enablement }) {
    this.#ctx = ctx;
    this.#access = access;
    this.#enablement = enablement;
  }

  async read({ caller }: RequestOf<Contract, 'bootstrap'>) {
    const { sql } = this.#ctx.db;
    const [levels, features] = await Promise.all([this.#access.levels(caller), this.#enablement.features(caller.envId ?? SYSTEM.envId)]);
    const reachable = [...levels.keys()];
    // By key alone: an «or» of two ways would read every organization there is.
    const ids = caller.platformAdmin
      ? sql`(select org_id from orgs where org_id <> ${SYSTEM.orgId} order by created_at desc limit ${MAX_ORGS})`
      : sql`(select org_id from envs where env_id = any(${reachable}::uuid[]) union select unnest(${reachable}::uuid[]))`;
    const [orgs, envs] = await Promise.all([
      sql<Org[]>`select * from orgs where org_id = any(array${ids}) order by created_at desc limit ${MAX_ORGS}`,
      sql<Env[]>`select * from envs where org_id = any(array${ids}) order by created_at`,
    ]);
    const visible = envs.filter(env => caller.platformAdmin || levels.has(env.org_id) || levels.has(env.env_id));
    const envsOf = Map.groupBy(visible, ({ org_id }) => org_id);
    return {
      user_id: caller.userId ?? caller.subject,
      platform_admin: caller.platformAdmin,
      orgs: orgs.map(org => ({
        ...org,
        access: caller.platformAdmin ? ('owner' as Level) : (levels.get(org.org_id) ?? ('viewer' as Level)),
        envs: envsOf.get(org.org_id) ?? [],
      })),
      system: { org_id: SYSTEM.orgId, env_id: SYSTEM.envId },
      features,
      feature_version: createHash('sha256').update(JSON.stringify(features)).digest('base64url').slice(0, 16),
    };
  }
}
