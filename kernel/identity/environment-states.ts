import { BoundedMap } from '@platform/sdk';
import { kernelProblem } from '../base/kernel-problem.ts';

/** What the registry says of an environment; an environment of a suspended organization is suspended too (G-SYS-02). */
export type EnvironmentState = 'active' | 'suspended' | 'archived' | 'absent';

/** Key that the registry writes with every change of a state, and for half a minute when it is asked. */
export const stateKey = (envId: string): string => `env-state:{${envId}}`;

/** How many answers are kept for the time in which neither the store nor the registry answers. */
const REMEMBERED = 10_000;
const STATES: ReadonlySet<string> = new Set<EnvironmentState>(['active', 'suspended', 'archived', 'absent']);

export interface StateSources {
  /** The value of a key, read no earlier than this call. */
  readonly read: (key: string) => Promise<string | null>;
  readonly ask: (envId: string) => Promise<EnvironmentState>;
}

/**
 * Keeps every service from changing anything in an environment that is suspended or archived (F-13). Each question reads what the registry
 * wrote, so that the next request on every process knows; while the registry is away its last word stands.
 */
export class EnvironmentStates {
  readonly #sources: StateSources;
  readonly #last = new BoundedMap<string, EnvironmentState>(REMEMBERED);

  constructor(sources: StateSources) {
    this.#sources = sources;
  }

  /** Throws 409 `env_suspended`, 409 `env_archived` or 403 `target_denied`. */
  async requireActive(envId: string): Promise<void> {
    const state = await this.of(envId);
    if (state === 'suspended')
      throw kernelProblem('env_suspended', { detail: 'Nothing changes here until a platform administrator resumes the environment.' });
    if (state === 'archived')
      throw kernelProblem('env_archived', { detail: 'Nothing changes in an archived environment. Use another one.' });
    if (state === 'absent') throw kernelProblem('target_denied', { detail: 'There is no such environment any more.' });
  }

  async of(envId: string): Promise<EnvironmentState> {
    const state = await this.#ask(envId);
    this.#last.set(envId, state);
    return state;
  }

  async #ask(envId: string): Promise<EnvironmentState> {
    const written = await this.#sources.read(stateKey(envId)).catch(() => null);
    if (written !== null && STATES.has(written)) return written as EnvironmentState;
    try {
      return await this.#sources.ask(envId);
    } catch (error) {
      const last = this.#last.get(envId);
      if (last === undefined) throw error;
      return last;
    }
  }
}
