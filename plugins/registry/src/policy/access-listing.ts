import { type ExplainedDecision, isProblem, type RequestOf } from '@platform/sdk';
import type { Contract, Ctx } from '../context.ts';
import type { Verticals } from '../verticals/verticals.ts';

const why = ({ trace }: ExplainedDecision): string => trace.join('; ');

/** Who can do something here, and what somebody can do here: live holdings from the identity service, narrowed by the policies in force. */
export class AccessListing {
  readonly #ctx: Ctx;
  readonly #verticals: Verticals;

  constructor(ctx: Ctx, verticals: Verticals) {
    this.#ctx = ctx;
    this.#verticals = verticals;
  }

  /** People page by page; nobody while no action is named. */
  async whoCan({ query, env: envId }: RequestOf<Contract, 'whoCan'>) {
    const { action, resource, limit = 50, cursor } = query;
    if (action === undefined) return this.#none(query);
    const known = (await this.#verticals.scopes()).scopes.find(({ scope }) => scope === action);
    if (!known)
      throw this.#ctx.problem('unknown_action', { detail: `No service declares "${action}". The scope catalog lists every action.` });
    const { identity } = this.#ctx.services;
    const page = await this.#ask(() =>
      identity.scopeHolders({ params: { scope: action }, query: { env_id: envId, limit, ...(cursor ? { cursor } : {}) } }),
    );
    // A policy may look at everything a person holds, not only at the action asked about.
    const held = await Promise.all(
      page.items.map(({ user_id: id }) => this.#ask(() => identity.userScopes({ params: { user_id: id }, query: { env_id: envId } }))),
    );
    const questions = page.items.map(({ user_id: id }, index) => ({
      principal: { kind: 'user' as const, id, scopes: held[index]?.scopes ?? [] },
      action,
      ...(resource ? { resource } : {}),
    }));
    const decisions = await this.#ctx.policy.explain({ service: known.service, envId, questions });
    return {
      items: page.items.map((holder, index) => ({ ...holder, via: holder.via.join(', '), ...decided(decisions[index]) })),
      next_cursor: page.next_cursor,
    };
  }

  /** Actions in the order of their names; none while nobody is named. */
  async whatCan({ query, env: envId }: RequestOf<Contract, 'whatCan'>) {
    const { principal, ...page } = query;
    const [, kind, id] = /^(user|workload):(.+)$/.exec(principal ?? '') ?? [];
    if (!kind || !id) return this.#none(query);
    const spec = { list: `actions of ${principal} ${envId}`, order: { scope: 'text' }, ascending: true } as const;
    let scopes: readonly string[] = [];
    const { items: shown, next_cursor } = await this.#ctx.page(page, spec, async ({ after: [after = ''] = [], limit }) => {
      scopes = await this.#held(kind as 'user' | 'workload', id, envId);
      const own = new Set(scopes);
      return (await this.#verticals.scopes()).scopes.filter(({ scope }) => own.has(scope) && scope > after).slice(0, limit);
    });
    const decisions = new Map<string, ExplainedDecision | undefined>();
    for (const service of new Set(shown.map(entry => entry.service))) {
      const actions = shown.filter(entry => entry.service === service).map(({ scope }) => scope);
      const answers = await this.#ctx.policy.explain({
        service,
        envId,
        questions: actions.map(action => ({ principal: { kind: kind as 'user' | 'workload', id, scopes }, action })),
      });
      for (const [index, action] of actions.entries()) decisions.set(action, answers[index]);
    }
    return {
      items: shown.map(({ scope, service, title }) => ({ action: scope, service, title, ...decided(decisions.get(scope)) })),
      next_cursor,
    };
  }

  /** The page of a question that is not asked yet, which no cursor goes on from. */
  #none(query: { limit?: number; cursor?: string }): Promise<{ items: never[]; next_cursor: string | null }> {
    return this.#ctx.page<never>(query, { list: 'nobody named', order: { id: 'id' } }, async () => []);
  }

  async #held(kind: 'user' | 'workload', id: string, envId: string): Promise<readonly string[]> {
    const { identity } = this.#ctx.services;
    if (kind === 'user') return (await this.#ask(() => identity.userScopes({ params: { user_id: id }, query: { env_id: envId } }))).scopes;
    try {
      return (await identity.getWorkload({ params: { name: id } })).scopes;
    } catch (cause) {
      if (isProblem(cause) && cause.code === 'workload_not_found') return [];
      return this.#away(cause);
    }
  }

  async #ask<T>(call: () => Promise<T>): Promise<T> {
    return call().catch(cause => this.#away(cause));
  }

  #away(cause: unknown): never {
    // It is the cursor of the identity service's list, handed on as it is.
    if (isProblem(cause) && cause.code === 'invalid_cursor')
      throw this.#ctx.problem('invalid_cursor', { cause, detail: 'Start again without a cursor.' });
    throw this.#ctx.problem('identity_unavailable', { cause, headers: { 'retry-after': '2' } });
  }
}

function decided(decision: ExplainedDecision | undefined): { effect: 'permit' | 'deny'; why: string } {
  return decision ? { effect: decision.effect, why: why(decision) } : { effect: 'deny', why: 'not decided' };
}
