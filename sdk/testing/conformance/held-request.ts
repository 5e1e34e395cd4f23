import type { AnyContract } from '@platform/sdk';
import { expect } from 'vitest';
import type { BootedHost } from '../boot.ts';
import type { WireAnswer } from '../calls/wire-request.ts';
import type { Try } from './tries.ts';

/** A request whose body stops in the middle until the test lets it go on: one that is under way for as long as the test wants. */
export class HeldRequest {
  readonly #rest: PromiseWithResolvers<void>;
  readonly #answer: Promise<WireAnswer>;

  private constructor(rest: PromiseWithResolvers<void>, answer: Promise<WireAnswer>) {
    [this.#rest, this.#answer] = [rest, answer];
  }

  /** Resolves when the service is at work on it. */
  static async begin(host: BootedHost<AnyContract>, { route, path, persona, input }: Try): Promise<HeldRequest> {
    const rest = Promise.withResolvers<void>();
    const text = JSON.stringify(input.body);
    async function* pieces() {
      yield Buffer.from(text.slice(0, 1));
      await rest.promise;
      yield Buffer.from(text.slice(1));
    }
    const answer = host.fetch(`${path}?target_env_id=${persona.envId}`, {
      method: route.method,
      persona,
      headers: { 'content-type': 'application/json' },
      body: pieces(),
    });
    answer.catch(() => undefined);
    await expect.poll(() => host.process.instances.get(host.manifest.id)?.app.active).toBe(1);
    return new HeldRequest(rest, answer);
  }

  /** Sends the rest and reads the answer. */
  finish(): Promise<WireAnswer> {
    this.#rest.resolve();
    return this.#answer;
  }
}
