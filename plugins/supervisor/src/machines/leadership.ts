import { type KeyValue, FLEET_KEYS } from '@platform/sdk';
import { hold, release } from '../fleet/lease.ts';

const KEY = FLEET_KEYS.machinesLead;
const LIFETIME_S = 30;

/**
 * The one lock of the fleet's machines: who holds it decides about machines (SUP-049, SUP-112, C37). It is renewed at every tick, and lasts
 * 30 s.
 */
export class Leadership {
  readonly #kv: KeyValue;
  readonly #ip: string;

  constructor(kv: KeyValue, ip: string) {
    this.#kv = kv;
    this.#ip = ip;
  }

  /** Takes the lead or keeps it; false where somebody else has it. */
  hold(): Promise<boolean> {
    return hold(this.#kv, KEY, this.#ip, LIFETIME_S);
  }

  async holder(): Promise<string | null> {
    return (await this.#kv.call('GET', KEY)) as string | null;
  }

  leave(): Promise<void> {
    return release(this.#kv, KEY, this.#ip);
  }
}
