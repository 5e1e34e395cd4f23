import type { Ctx } from './context.ts';

export interface DomainChange {
  readonly scope: 'org' | 'env' | 'app' | 'branding';
  readonly org_id?: string;
  readonly env_id?: string;
  readonly app_instance_id?: string;
  readonly hostnames?: readonly string[];
}

/**
 * Names the state of everything a host name resolves by; never the same twice, so that a store that lost it cannot bring an old one back.
 */
export const DOMAINS_VERSION = 'sys:domains:version';

/**
 * Word to resolvers after a commit and before the answer: the registry's own read the version with every question (H-31), others hear the
 * channel (G-K-13).
 */
export class DomainChanges {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** Best effort: when the store is away resolvers find out within 30 s, and the mutation has succeeded anyway (REG-147). */
  async publish(change: DomainChange, ...more: readonly DomainChange[]): Promise<void> {
    const at = this.#ctx.clock.now().toISOString();
    await this.#tell(
      [change, ...more].map(each => ['PUBLISH', 'platform:sys:domain:changed', JSON.stringify({ ...each, at })]),
      change.scope,
    );
  }

  /** What service labels lead to has changed, and no tenant with it. */
  async relabel(): Promise<void> {
    await this.#tell([], 'labels');
  }

  async #tell(messages: readonly (readonly string[])[], scope: string): Promise<void> {
    try {
      const answers = await this.#ctx.kv.pipeline([['SET', DOMAINS_VERSION, this.#ctx.platform.newId()], ...messages]);
      for (const answer of answers) if (answer instanceof Error) throw answer;
    } catch (error) {
      this.#ctx.log.warn({ err: error, scope }, 'domain change not published; resolvers will poll');
    }
  }
}
