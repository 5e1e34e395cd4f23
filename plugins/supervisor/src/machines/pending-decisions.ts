import { type KeyValue, FLEET_KEYS } from '@platform/sdk';
import type { Pending } from '../../contract/schema/machine.ts';

const { machinesPending: KEY, machinesApproved: APPROVED } = FLEET_KEYS;
const LIFETIME_MS = 3_600_000;

/** What waits for somebody's decision, for an hour (SUP-051, SUP-076). */
export class PendingDecisions {
  readonly #kv: KeyValue;
  readonly #now: () => Date;

  constructor(kv: KeyValue, now: () => Date) {
    this.#kv = kv;
    this.#now = now;
  }

  /** Asks once: what waits already is not asked again. */
  async ask(kind: Pending['kind'], ip: string, reason: string): Promise<void> {
    const key = `${kind}:${ip}`;
    if ((await this.list()).some(pending => pending.key === key)) return;
    const created = this.#now();
    const pending: Pending = {
      key,
      kind,
      reason,
      created_at: created.toISOString(),
      expires_at: new Date(created.getTime() + LIFETIME_MS).toISOString(),
    };
    await this.#kv.call('HSET', KEY, key, JSON.stringify(pending));
  }

  async list(): Promise<Pending[]> {
    const now = this.#now().toISOString();
    const all = ((await this.#kv.call('HVALS', KEY)) as string[]).map(text => JSON.parse(text) as Pending);
    // What is over is absent for every reader; the first one that sees it sweeps it.
    for (const { key, expires_at } of all) if (expires_at <= now) await this.#kv.call('HDEL', KEY, key);
    return all.filter(({ expires_at }) => expires_at > now).sort((left, right) => (left.created_at < right.created_at ? -1 : 1));
  }

  /** Leaves an approved decision to the leader: it has what machines are made with. */
  async approve(pending: Pending): Promise<void> {
    await this.#kv.call('HSET', APPROVED, pending.key, JSON.stringify(pending));
  }

  /** The next decision that was approved, for the one who takes it. */
  async nextApproved(): Promise<Pending | undefined> {
    const [text] = (await this.#kv.call('HVALS', APPROVED)) as string[];
    const pending = text === undefined ? undefined : (JSON.parse(text) as Pending);
    return pending && Number(await this.#kv.call('HDEL', APPROVED, pending.key)) === 1 ? pending : undefined;
  }

  /** Takes the decision out of the queue; one of several that try gets it. */
  async take(key: string): Promise<Pending | undefined> {
    const pending = (await this.list()).find(each => each.key === key);
    return pending && Number(await this.#kv.call('HDEL', KEY, key)) === 1 ? pending : undefined;
  }
}
