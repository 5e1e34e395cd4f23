import { type Cache, isProblem, SYSTEM } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import type { SessionRecord } from '../session/session-store.ts';

interface Reach {
  readonly platformAdmin: boolean;
  readonly orgs: ReadonlySet<string>;
  readonly envs: ReadonlySet<string>;
  readonly at: number;
}

const FRESH_MS = 30_000;
const SETTLING_MS = 1_000;
const LIMIT = 10_000;
const GROUP = /^platform:(org|env):([0-9a-f-]{36}):/;
const ADMIN = 'sys:sys:admin';

/**
 * What the people behind sessions may read at this moment, from the identity service's live groups; kept 30 s, dropped when access changes.
 */
export class LiveAccess {
  readonly #ctx: Ctx;
  readonly #reach: Cache<Reach>;
  readonly #scopes: Cache<readonly string[]>;
  readonly #orgs: Cache<string>;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#reach = ctx.cache({ max: LIMIT, ttl: FRESH_MS });
    this.#scopes = ctx.cache({ max: LIMIT, ttl: FRESH_MS });
    // The organization of an environment never changes.
    this.#orgs = ctx.cache({ max: LIMIT, ttl: Number.POSITIVE_INFINITY });
  }

  async isPlatformAdmin(session: SessionRecord): Promise<boolean> {
    return (await this.#of(session)).platformAdmin;
  }

  /** The session's own environment unless it is the system's, every environment for an administrator, else by group (C40). */
  async mayRead(session: SessionRecord, envId: string): Promise<boolean> {
    if (envId === session.env_id && envId !== SYSTEM.envId) return true;
    const reach = await this.#of(session);
    if (reach.platformAdmin || reach.envs.has(envId)) return true;
    if (envId === SYSTEM.envId || reach.orgs.size === 0) return false;
    const org = await this.orgOf(envId);
    return org !== undefined && reach.orgs.has(org);
  }

  /** A member of the organization, or of one of its environments that is named. */
  async mayReadOrg(session: SessionRecord, orgId: string): Promise<boolean> {
    const reach = await this.#of(session);
    return reach.platformAdmin || reach.orgs.has(orgId);
  }

  /** Live effective scopes in the session's own environment. */
  async scopes(session: SessionRecord): Promise<readonly string[]> {
    const { user_id, env_id } = session;
    return this.#scopes.get(
      `${user_id} ${env_id}`,
      async () => (await this.#ctx.services.identity.userScopes({ params: { user_id }, query: { env_id } })).scopes,
    );
  }

  /** The organization of an environment; nothing where there is no such environment. */
  async orgOf(envId: string): Promise<string | undefined> {
    if (envId === SYSTEM.envId) return SYSTEM.orgId;
    const read = async () => (await this.#ctx.services.registry.getEnv({ params: { env_id: envId } })).org_id;
    return this.#orgs.get(envId, read).catch((error: unknown) => {
      if (isProblem(error) && error.status < 500) return undefined;
      throw error;
    });
  }

  /** Access of these people changed; of everybody when nobody is named. */
  changed(subjects: readonly string[]): void {
    if (subjects.length === 0) this.#reach.forget();
    for (const subject of subjects) this.#reach.forget(subject);
    this.#scopes.forget();
  }

  /** Asks again unless the answer is this very second's: what was just created has just given its creator access. */
  settle(session: SessionRecord): void {
    const known = this.#reach.peek(session.user_id);
    if (known && this.#now() - known.at > SETTLING_MS) this.#reach.forget(session.user_id);
  }

  #of(session: SessionRecord): Promise<Reach> {
    return this.#reach.get(session.user_id, () => this.#load(session.user_id));
  }

  async #load(userId: string): Promise<Reach> {
    const { identity } = this.#ctx.services;
    const [{ groups }, { scopes }] = await Promise.all([
      identity.userGroups({ params: { user_id: userId } }),
      identity.userScopes({ params: { user_id: userId }, query: { env_id: SYSTEM.envId } }),
    ]);
    const orgs = new Set<string>();
    const envs = new Set<string>();
    for (const { name } of groups) {
      const [, kind, id] = GROUP.exec(name) ?? [];
      if (id) (kind === 'org' ? orgs : envs).add(id);
    }
    return { platformAdmin: scopes.includes(ADMIN), orgs, envs, at: this.#now() };
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }
}
