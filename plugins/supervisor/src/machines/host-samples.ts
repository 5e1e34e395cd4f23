import { type KeyValue, type MachineUsage, FLEET_KEYS } from '@platform/sdk';
import type { Machine } from '../../contract/schema/machine.ts';

const LIFETIME_S = 120;
const ORDER = FLEET_KEYS.machinesOrder;
/** From these on a machine is saturated (G-CAP-11). */
const SATURATED = { cpu_pct: 85, mem_pct: 90 };

export interface HostSample extends MachineUsage {
  readonly ip: string;
  readonly saturated: boolean;
  readonly saturated_service: string | null;
  readonly sampled_at: string;
}

export const isSaturated = ({ cpu_pct, mem_pct }: MachineUsage): boolean => cpu_pct >= SATURATED.cpu_pct || mem_pct >= SATURATED.mem_pct;

/** What the machines of the fleet say of themselves (SUP-073), and in which order they came (SUP-077). */
export class HostSamples {
  readonly #kv: KeyValue;

  constructor(kv: KeyValue) {
    this.#kv = kv;
  }

  async publish(sample: HostSample): Promise<void> {
    await this.#kv.call('SET', FLEET_KEYS.host(sample.ip), JSON.stringify(sample), 'EX', LIFETIME_S);
  }

  /** The first machine that ever came is the base: it stands at the head, and stays there (SUP-077). */
  async join(ip: string): Promise<void> {
    const order = await this.order();
    if (!order.includes(ip)) await this.#kv.call('RPUSH', ORDER, ip);
  }

  async leave(ip: string): Promise<void> {
    await this.#kv.pipeline([
      ['LREM', ORDER, 0, ip],
      ['DEL', FLEET_KEYS.host(ip)],
    ]);
  }

  async order(): Promise<readonly string[]> {
    return (await this.#kv.call('LRANGE', ORDER, 0, -1)) as string[];
  }

  async machines(): Promise<Machine[]> {
    const order = await this.order();
    if (order.length === 0) return [];
    const texts = await this.#kv.current(order.map(ip => FLEET_KEYS.host(ip)));
    return texts.flatMap((text, at) => (text === null ? [] : [{ ...(JSON.parse(text) as HostSample), base: at === 0 }]));
  }
}
