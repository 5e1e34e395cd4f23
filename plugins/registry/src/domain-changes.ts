import type { Ctx } from './context.ts';

export interface DomainChange {
  readonly scope: 'org' | 'env' | 'app' | 'branding';
  readonly org_id?: string;
  readonly env_id?: string;
  readonly app_instance_id?: string;
  readonly hostnames?: readonly string[];
}

/** Best-effort word to resolvers after a commit (G-K-13); when the channel is down they poll, and the mutation has succeeded anyway. */
export class DomainChanges {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async publish(change: DomainChange): Promise<void> {
    try {
      await this.#ctx.kv.call('PUBLISH', 'platform:sys:domain:changed', JSON.stringify({ ...change, at: this.#ctx.clock.now().toISOString() }));
    } catch (error) {
      this.#ctx.log.warn({ err: error, scope: change.scope }, 'domain change not published; resolvers will poll');
    }
  }
}
