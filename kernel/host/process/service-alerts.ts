import { type KeyValue, type Logger, FLEET_KEYS } from '@platform/sdk';

const ALERTS = FLEET_KEYS.alerts;
const FRESH_MS = 1_000;

/** A service that was given up on and has not come back (G-CAP-05). */
export interface ServiceAlert {
  readonly service_type: string;
  readonly restarts: number;
  readonly reason: string;
  readonly log_path: string;
  readonly at: string;
}

/**
 * The alerts of the machine's processes, shared through the key-value store: who watches a process writes them, every process shows them.
 */
export class ServiceAlerts {
  readonly #kv: KeyValue;
  readonly #log: Logger;
  #known: { at: number; alerts: Promise<readonly ServiceAlert[]> } | undefined;

  constructor(kv: KeyValue, log: Logger) {
    this.#kv = kv;
    this.#log = log;
  }

  async raise(alert: ServiceAlert): Promise<void> {
    await this.#kv
      .call('HSET', ALERTS, alert.service_type, JSON.stringify(alert))
      .catch(error => this.#log.warn({ service_type: alert.service_type, err: error }, 'an alert could not be shared'));
  }

  async clear(service: string): Promise<void> {
    await this.#kv
      .call('HDEL', ALERTS, service)
      .catch(error => this.#log.warn({ service_type: service, err: error }, 'an alert that is over could not be taken back'));
  }

  /** Those raised now, read at most once a second; none while the store is away, which has checks of its own. */
  raised(): Promise<readonly ServiceAlert[]> {
    const now = performance.now();
    if (this.#known && now - this.#known.at < FRESH_MS) return this.#known.alerts;
    const alerts = this.#kv.call('HVALS', ALERTS).then(
      rows => (rows as string[]).map(row => JSON.parse(row) as ServiceAlert),
      () => [],
    );
    this.#known = { at: now, alerts };
    return alerts;
  }
}
