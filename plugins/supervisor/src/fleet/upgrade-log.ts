import { type KeyValue, type Logger, FLEET_KEYS } from '@platform/sdk';
import type { UpgradeProgress } from '../../contract/schema/instance.ts';

const LIFETIME_S = 600;
const key = FLEET_KEYS.upgrade;

/** How far upgrades are, in the shared store under the keys of both instances for ten minutes (SUP-045). */
export class UpgradeLog {
  readonly #kv: KeyValue;
  readonly #log: Logger;

  constructor(kv: KeyValue, log: Logger) {
    this.#kv = kv;
    this.#log = log;
  }

  async say(progress: UpgradeProgress): Promise<void> {
    const text = JSON.stringify(progress);
    const keys = [progress.old_key, ...(progress.new_key === null ? [] : [progress.new_key])];
    for (const instance of keys)
      await this.#kv
        .call('SET', key(instance), text, 'EX', LIFETIME_S)
        .catch(error => this.#log.warn({ instance, err: error }, 'the progress of an upgrade could not be shared'));
  }

  /** Of one instance, or of all that are known in the fleet. */
  async list(instance: string | undefined, known: readonly string[]): Promise<UpgradeProgress[]> {
    const asked = instance === undefined ? known : [instance];
    const texts = asked.length === 0 ? [] : await this.#kv.current(asked.map(key));
    const found = texts.flatMap(text => (text === null ? [] : [JSON.parse(text) as UpgradeProgress]));
    const newest = new Map(found.map(progress => [progress.operation_id, progress]));
    return [...newest.values()].sort((left, right) => (left.started_at < right.started_at ? 1 : -1));
  }
}
