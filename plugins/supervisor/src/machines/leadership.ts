import type { KeyValue } from '@platform/sdk';

const KEY = 'captain:lock:machines';
const LIFETIME_S = 30;

/** The one lock of the fleet's machines: who holds it decides about machines (SUP-049, SUP-112, C37). It is renewed at every tick, and lasts 30 s. */
export class Leadership {
  readonly #kv: KeyValue;
  readonly #ip: string;

  constructor(kv: KeyValue, ip: string) {
    this.#kv = kv;
    this.#ip = ip;
  }

  /** Takes the lead or keeps it; false where somebody else has it. */
  async hold(): Promise<boolean> {
    if ((await this.#kv.call('SET', KEY, this.#ip, 'NX', 'EX', LIFETIME_S)) === 'OK') return true;
    if ((await this.holder()) !== this.#ip) return false;
    return Number(await this.#kv.call('EXPIRE', KEY, LIFETIME_S)) === 1;
  }

  async holder(): Promise<string | null> {
    return (await this.#kv.call('GET', KEY)) as string | null;
  }

  async leave(): Promise<void> {
    if ((await this.holder()) === this.#ip) await this.#kv.call('DEL', KEY);
  }
}
