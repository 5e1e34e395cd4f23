import { createHash } from 'node:crypto';
import { type RequestOf, SYSTEM } from '@platform/sdk';
import type { Env, Org } from '../contract/schema/tenant.ts';
import type { Access, Level, Levels } from './tenants/access.ts';
import type { Contract, Ctx } from './context.ts';
import type { Enablement } from './verticals/enablement.ts';

const MAX_ORGS = 1_000;

interface Reached {
  readonly orgs: readonly Org[];
  readonly envs: readonly Env[];
}

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
    const [levels, features] = await Promise.all([
      this.#access.levels(caller),
      caller.envId === undefined ? {} : this.#enablement.features(caller.envId),
    ]);
    const { orgs, envs } = await (caller.platformAdmin ? this.#newest() : this.#reached(levels));
    const envsOf = Map.groupBy(envs, ({ org_id }) => org_id);
    return {
      user_id: caller.userId ?? caller.subject,
      platform_admin: caller.platformAdmin,
      orgs: orgs.map(org => ({
        ...org,
        access: caller.platformAdmin ? ('owner' as Level) : (levels.orgs.get(org.org_id) ?? ('viewer' as Level)),
        envs: envsOf.get(org.org_id) ?? [],
      })),
      system: { org_id: SYSTEM.orgId, env_id: SYSTEM.envId },
      features,
      feature_version: createHash('sha256').update(JSON.stringify(features)).digest('base64url').slice(0, 16),
    };
  }

  /** What an administrator of the platform sees: everybody's. */
  async #newest(): Promise<Reached> {
    const { sql } = this.#ctx.db;
    const orgs = await sql<
      Org[]
    >`select * from orgs where org_id <> ${SYSTEM.orgId} order by created_at desc, org_id desc limit ${MAX_ORGS}`;
    return { orgs, envs: await this.#envsOf(orgs.map(orgOf)) };
  }

  /**
   * By key alone: an «or» of two ways would read every organization there is. Lists go as one text each: the driver takes its time over
   * long arrays.
   */
  async #reached({ orgs: ofOrgs, envs: ofEnvs }: Levels): Promise<Reached> {
    const { sql } = this.#ctx.db;
    const [own, envs] = await this.#whole([...ofOrgs.keys()]);
    const seen = new Set(envs.map(({ env_id }) => env_id));
    const single = [...ofEnvs.keys()].filter(envId => !seen.has(envId));
    if (single.length === 0) return { orgs: own, envs };
    // Somebody who is in an environment and not in its organization sees that one of it.
    const more = await sql<
      Env[]
    >`select * from envs where env_id = any(string_to_array(${single.join()}, ',')::uuid[]) order by created_at, env_id`;
    const further = [...new Set(more.map(({ org_id }) => org_id))].filter(orgId => !ofOrgs.has(orgId));
    const others =
      further.length === 0 ? [] : await sql<Org[]>`select * from orgs where org_id = any(string_to_array(${further.join()}, ',')::uuid[])`;
    const orgs = [...own, ...others].sort(newestFirst).slice(0, MAX_ORGS);
    return { orgs, envs: [...envs, ...more] };
  }

  /** Organizations with their environments: both at once, unless some of them are too many. */
  async #whole(ids: readonly string[]): Promise<[readonly Org[], readonly Env[]]> {
    const { sql } = this.#ctx.db;
    const orgs = sql<
      Org[]
    >`select * from orgs where org_id = any(string_to_array(${ids.join()}, ',')::uuid[]) order by created_at desc, org_id desc
      limit ${MAX_ORGS}`;
    if (ids.length <= MAX_ORGS) return Promise.all([orgs, this.#envsOf(ids)]);
    const newest = await orgs;
    return [newest, await this.#envsOf(newest.map(orgOf))];
  }

  async #envsOf(ids: readonly string[]): Promise<readonly Env[]> {
    if (ids.length === 0) return [];
    return this.#ctx.db.sql<
      Env[]
    >`select * from envs where org_id = any(string_to_array(${ids.join()}, ',')::uuid[]) order by created_at, env_id`;
  }
}

/** As the statements order them: several are made in one moment. */
const newestFirst = (left: Org, right: Org): number =>
  left.created_at === right.created_at ? (left.org_id < right.org_id ? 1 : -1) : left.created_at < right.created_at ? 1 : -1;
const orgOf = ({ org_id }: Org): string => org_id;
