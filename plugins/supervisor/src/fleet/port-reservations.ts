import { randomInt } from 'node:crypto';
import { type KeyValue, type ProcessHost, FLEET_KEYS } from '@platform/sdk';
import { hold } from './lease.ts';

const [LOWEST, HIGHEST] = [20_000, 30_000];
const LIFETIME_S = 60;
const TRIES = 200;

/** Ports of instances: taken in the shared store for sixty seconds, and tried by binding (SUP-038, G-CAP-10). */
export class PortReservations {
  readonly #kv: KeyValue;
  readonly #machine: Pick<ProcessHost, 'ip' | 'isFree'>;

  constructor(kv: KeyValue, machine: Pick<ProcessHost, 'ip' | 'isFree'>) {
    this.#kv = kv;
    this.#machine = machine;
  }

  /** The port the instance had, where nobody took it, else another one. */
  async reserve(owner: string, previous?: number): Promise<number> {
    for (let turn = 0; turn < TRIES; turn++) {
      const port = turn === 0 && previous !== undefined ? previous : randomInt(LOWEST, HIGHEST);
      if (!(await this.#take(owner, port))) continue;
      if (await this.#machine.isFree(port)) return port;
      await this.free(port);
    }
    throw new Error(`no port of ${this.#machine.ip} is free between ${LOWEST} and ${HIGHEST - 1}`);
  }

  /** Holds it for another sixty seconds (H-30). */
  async renew(owner: string, port: number): Promise<void> {
    await this.#take(owner, port);
  }

  async free(port: number): Promise<void> {
    await this.#kv.call('DEL', this.#key(port));
  }

  #take(owner: string, port: number): Promise<boolean> {
    return hold(this.#kv, this.#key(port), owner, LIFETIME_S);
  }

  #key(port: number): string {
    return FLEET_KEYS.port(this.#machine.ip, port);
  }
}
