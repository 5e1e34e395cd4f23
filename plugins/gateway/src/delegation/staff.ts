import { isProblem } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import type { SessionRecord } from '../session/session-store.ts';

/**
 * What a person may do in an environment at this moment. Past every cache: behind these questions stands a workload that may do it
 * everywhere, so nobody else asks again (G-BFF-07).
 */
export class Staff {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** Throws `target_denied` unless the person holds one of these there. */
  async require({ user_id: userId }: SessionRecord, envId: string, any: readonly string[]): Promise<void> {
    const { scopes } = await this.#ctx.services.identity
      .userScopes({ params: { user_id: userId }, query: { env_id: envId } })
      .catch((cause: unknown) => {
        if (isProblem(cause) && cause.status < 500) throw this.#ctx.problem('target_denied', { cause });
        throw this.#ctx.problem('identity_unavailable', { cause, headers: { 'retry-after': '2' } });
      });
    if (!any.some(scope => scopes.includes(scope)))
      throw this.#ctx.problem('target_denied', {
        detail: `This needs ${any.map(scope => `platform:${scope}`).join(' or ')} in the environment.`,
      });
  }
}
