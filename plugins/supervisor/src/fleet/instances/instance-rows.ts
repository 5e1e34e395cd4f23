import type { Logger, ProcessHost } from '@platform/sdk';
import type { Slot } from '../../life/fleet-life.ts';
import { type Instance, STATUS } from './instance.ts';

export interface InstanceRowsParts {
  readonly machine: ProcessHost;
  readonly log: Logger;
  readonly versionOf: (service: string) => string;
  readonly slot: (id: string) => Slot | undefined;
  /** The registry has taken what it was told of an instance, or has not. */
  readonly written: (instance: Instance) => void;
}

/**
 * What the registry says of the instances of this machine. One row is written by one hand at a time, and says what is so when its turn
 * comes.
 */
export class InstanceRows {
  readonly #parts: InstanceRowsParts;
  readonly #turns = new Map<string, Promise<unknown>>();
  /** The write of each row that waits for its turn; there is no need for a second one. */
  readonly #waiting = new Map<string, { readonly instance: Instance; tell: boolean }>();
  /** It is said once that the registry is away. */
  #away = false;
  /** Rows that the registry was to lose while it was away. */
  readonly #left = new Map<string, { readonly service: string; readonly port: number }>();

  constructor(parts: InstanceRowsParts) {
    this.#parts = parts;
  }

  /** Resolves when every row that was to be written is. */
  async settled(): Promise<void> {
    await Promise.all(this.#turns.values());
  }

  /** `tell`: whether everybody hears of it at once, or at their next look. */
  write(instance: Instance, tell: boolean): void {
    const { machine, log, written } = this.#parts;
    const { service, port, process } = instance;
    if (port === undefined || !process) return;
    const key = `${service} ${port}`;
    this.#left.delete(key);
    const waiting = this.#waiting.get(key);
    if (waiting?.instance === instance) {
      waiting.tell ||= tell;
      return;
    }
    const next = { instance, tell };
    this.#waiting.set(key, next);
    this.#inTurn(key, async () => {
      if (this.#waiting.get(key) === next) this.#waiting.delete(key);
      const row = this.#rowOf(instance, port, process.pid);
      if (!row) return;
      await machine.instances.write(row, next.tell);
      this.#away = false;
      [instance.registered, instance.refused] = [row.status, undefined];
      written(instance);
    }).catch(error => {
      log[this.#away ? 'debug' : 'warn']({ service_type: service, err: error }, 'the registry of instances does not take a row');
      this.#away = true;
      instance.refused = error;
      written(instance);
    });
  }

  remove({ service, port }: Pick<Instance, 'service' | 'port'>): void {
    const { machine, log } = this.#parts;
    if (port === undefined) return;
    const key = `${service} ${port}`;
    const row = { service_type: service, ip: machine.ip, port };
    // What is written from here on comes after this.
    this.#waiting.delete(key);
    this.#left.delete(key);
    this.#inTurn(key, () => machine.instances.remove(row)).catch(error => {
      this.#left.set(key, { service, port });
      log.debug({ service_type: service, err: error }, 'the row of a process that is gone stays until the registry answers');
    });
  }

  /** Takes out what the registry was away for. */
  removeAgain(): void {
    for (const row of [...this.#left.values()]) this.remove(row);
  }

  /** The process may be gone by now, and its row then says how it went. */
  #rowOf(instance: Instance, port: number, pid: number) {
    const { machine, versionOf, slot } = this.#parts;
    const { service } = instance;
    const life = slot(instance.slot)?.life;
    const status = life && STATUS[life.phase];
    if (!life || !status || instance.port !== port) return undefined;
    return {
      service_type: service,
      ip: machine.ip,
      port,
      pid,
      status,
      version: `${versionOf(service)}.${instance.build}`,
      metrics: instance.metrics,
      restarts: life.restarts,
      api_calls: instance.apiCalls,
      started_at: new Date(instance.startedAt).toISOString(),
      last_health_at: instance.lastHealthAt,
      failures: life.failures,
      log_path: machine.logPath(service),
    };
  }

  #inTurn(key: string, work: () => Promise<void>): Promise<void> {
    const turn = (this.#turns.get(key) ?? Promise.resolve()).then(work, work);
    const settled = turn.catch(() => undefined);
    this.#turns.set(key, settled);
    void settled.then(() => this.#turns.get(key) === settled && this.#turns.delete(key));
    return turn;
  }
}
