import { type KeyValue, type Logger, type ProcessHost, type Sql, FLEET_KEYS } from '@platform/sdk';
import type { Look } from './instances/instance.ts';

const ALERTS = FLEET_KEYS.alerts;
const LOG_LINES = 200;
const KEPT_PER_SERVICE = 20;
const MAX_WAITING = 100;

/** A service that was given up on and has not come back (G-CAP-05). */
export interface Alert {
  readonly service_type: string;
  readonly restarts: number;
  readonly reason: string;
  readonly log_path: string;
  readonly at: string;
}

/** What is left of a process: why it ended, what it said last, how it answered, and which code it was. */
export interface PostMortem extends Alert {
  readonly post_mortem_id: string;
  readonly ip: string;
  readonly pid: number | null;
  readonly build: string;
  readonly log_lines: readonly string[];
  readonly looks: readonly Look[];
}

/** Alerts of the fleet in the shared store (SUP-074), and what led to each in the database. */
export class AlertBook {
  readonly #kv: KeyValue;
  readonly #sql: Sql;
  readonly #machine: ProcessHost;
  readonly #log: Logger;
  /** Post-mortems that the database did not take yet. */
  #waiting: PostMortem[] = [];
  /** What the shared store did not take yet. */
  readonly #unsaid = new Map<string, Alert | null>();

  constructor({ kv, sql, machine, log }: { kv: KeyValue; sql: Sql; machine: ProcessHost; log: Logger }) {
    this.#kv = kv;
    this.#sql = sql;
    this.#machine = machine;
    this.#log = log;
  }

  async raise(alert: Alert): Promise<void> {
    this.#unsaid.set(alert.service_type, alert);
    await this.flush();
  }

  async clear(service: string): Promise<void> {
    this.#unsaid.set(service, null);
    await this.flush();
  }

  async list(): Promise<readonly Alert[]> {
    return ((await this.#kv.call('HVALS', ALERTS)) as string[])
      .map(row => JSON.parse(row) as Alert)
      .sort((left, right) => (left.at < right.at ? 1 : -1));
  }

  /** Keeps what there is to know of a process that ended: the last 200 lines, the last looks, the build. */
  async keep(end: Omit<PostMortem, 'log_lines'>): Promise<void> {
    const log_lines = await this.#machine.logTail(end.service_type, LOG_LINES).catch(() => []);
    this.#waiting.push({ ...end, log_lines });
    if (this.#waiting.length > MAX_WAITING) this.#waiting.shift();
    await this.flush();
  }

  async postMortems(service: string | undefined, limit: number): Promise<readonly PostMortem[]> {
    const rows = await this.#sql<{ body: PostMortem }[]>`
      select body from post_mortems where ${service ?? null}::text is null or service_type = ${service ?? null}
        order by at desc, post_mortem_id desc limit ${limit}`;
    return rows.map(({ body }) => body);
  }

  /** Says again what a store was away for. */
  async flush(): Promise<void> {
    for (const [service, alert] of [...this.#unsaid]) {
      const said = await (alert
        ? this.#kv.call('HSET', ALERTS, service, JSON.stringify(alert))
        : this.#kv.call('HDEL', ALERTS, service)
      ).then(
        () => true,
        () => false,
      );
      // One of them is enough to know that the store is away.
      if (!said) break;
      if (this.#unsaid.get(service) === alert) this.#unsaid.delete(service);
    }
    for (const body of [...this.#waiting]) {
      const kept = await this.#write(body).catch(error => this.#log.debug({ err: error }, 'a post-mortem waits for the database'));
      if (!kept) break;
      this.#waiting = this.#waiting.filter(each => each !== body);
    }
  }

  async #write(body: PostMortem): Promise<true> {
    await this.#sql`insert into post_mortems (post_mortem_id, service_type, at, body)
        values (${body.post_mortem_id}, ${body.service_type}, ${body.at}, ${this.#sql.json(body as never)}) on conflict do nothing`;
    await this.#sql`
      delete from post_mortems where service_type = ${body.service_type} and post_mortem_id not in
        (select post_mortem_id from post_mortems where service_type = ${body.service_type} order by at desc, post_mortem_id desc
          limit ${KEPT_PER_SERVICE})`;
    return true;
  }
}
