import { isId, type RequestOf, type Sql } from '@platform/sdk';
import type { EnvironmentState } from '../../contract/schema/tenant.ts';
import type { Contract, Ctx } from '../context.ts';

/** How long a written state stands. A process that dies between its commit and this word leaves a stale one for as long. */
const STANDS_S = 30;

interface Row {
  readonly env_id: string;
  readonly state: EnvironmentState;
}

/**
 * The state of environments, where every process reads it before a mutation (F-13): written with each change, and by whoever asks for one
 * that is not there. An answer never replaces a state that a change has written meanwhile.
 */
export class EnvironmentStates {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async read({ params }: RequestOf<Contract, 'environmentState'>): Promise<{ state: EnvironmentState }> {
    const { sql } = this.#ctx.db;
    const [row] = isId(params.env_id) ? await select(sql, sql`e.env_id = ${params.env_id}`) : [];
    const state = row?.state ?? 'absent';
    await this.#write([['SET', key(params.env_id), state, 'EX', STANDS_S, 'NX']]);
    return { state };
  }

  /** After a change of an organization or environment has been committed, and before its answer. */
  async publish({ orgId, envId }: { orgId: string; envId?: string }): Promise<void> {
    const { sql } = this.#ctx.db;
    const rows = await select(sql, envId === undefined ? sql`e.org_id = ${orgId}` : sql`e.env_id = ${envId}`);
    if (rows.length === 0 && envId !== undefined) await this.gone([envId]);
    await this.#write(rows.map(({ env_id, state }) => ['SET', key(env_id), state, 'EX', STANDS_S]));
  }

  async gone(envIds: readonly string[]): Promise<void> {
    await this.#write(envIds.map(envId => ['SET', key(envId), 'absent', 'EX', STANDS_S]));
  }

  /** Best effort: without the store every process asks the registry itself. */
  async #write(commands: readonly (readonly (string | number)[])[]): Promise<void> {
    if (commands.length === 0) return;
    try {
      for (const answer of await this.#ctx.kv.pipeline(commands)) if (answer instanceof Error) throw answer;
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'the state of an environment was not published; processes learn it within half a minute');
    }
  }
}

/** The key that the kernel reads. */
const key = (envId: string): string => `env-state:{${envId}}`;

/** An environment shares the fate of its organization (G-SYS-02). */
const select = (sql: Sql, where: unknown): Promise<Row[]> => sql<Row[]>`
  select e.env_id, case when 'archived' in (e.status, o.status) then 'archived' when 'suspended' in (e.status, o.status) then 'suspended'
    else 'active' end as state
  from envs e join orgs o using (org_id) where ${where}`;
