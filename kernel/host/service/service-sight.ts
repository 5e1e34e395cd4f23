import type { AnyContract, PluginBehaviour } from '@platform/sdk';
import type { ServiceMetrics } from '../../telemetry/service-metrics.ts';
import type { TaskRunner } from '../../work/task-runner.ts';
import type { ServiceInstanceParts } from './service-instance-parts.ts';

/** What a plugin does, whatever its contract. */
export type AnyBehaviour = PluginBehaviour<AnyContract, Readonly<Record<string, AnyContract>>>;
type Check = { ok: boolean; detail?: string };
interface Seen {
  readonly serving: boolean;
  /** Requests under way. */
  readonly active: number;
  readonly tasks: TaskRunner | undefined;
  readonly behaviour: AnyBehaviour | undefined;
}

/** What operators and collectors see of one service: its health, whether it can do its work, and its figures. */
export class ServiceSight {
  readonly #parts: ServiceInstanceParts;
  readonly #metrics: ServiceMetrics;
  readonly #seen: () => Seen;

  constructor(parts: ServiceInstanceParts, metrics: ServiceMetrics, seen: () => Seen) {
    this.#parts = parts;
    this.#metrics = metrics;
    this.#seen = seen;
  }

  get active(): number {
    return this.#seen().active;
  }

  get totals(): ServiceMetrics['totals'] {
    return this.#metrics.totals;
  }

  async health(): Promise<Readonly<Record<string, unknown>>> {
    return (await this.#seen().behaviour?.health?.()) ?? {};
  }

  async readiness(): Promise<Record<string, Check>> {
    const { pool, kv } = this.#parts;
    const { serving, behaviour } = this.#seen();
    const [database, store] = await Promise.all([
      pool.healthy(),
      kv.call('PING').then(
        () => true,
        () => false,
      ),
    ]);
    const checks: Record<string, Check> = { database: { ok: database }, key_value: { ok: store }, serving: { ok: serving } };
    for (const [name, check] of Object.entries(behaviour?.checks ?? {})) {
      checks[name] = await check().then(
        ok => ({ ok }),
        () => ({ ok: false, detail: 'the check failed' }),
      );
    }
    return checks;
  }

  async figures(): Promise<Readonly<Record<string, number>>> {
    return { ...(await this.#gauges()), ...(await this.#metrics.declared.figures()) };
  }

  /** The same with histograms, as Prometheus reads it. */
  text(figures: Readonly<Record<string, number>>): Promise<string> {
    return this.#metrics.text(figures);
  }

  async otlp(): Promise<readonly object[]> {
    return this.#metrics.otlp(await this.#gauges());
  }

  /** Counters for the statistics (CA-089). Nobody may listen, and the store may be away: then they are lost. */
  async tellTraffic(): Promise<void> {
    const traffic = this.#metrics.traffic.take(this.#parts.clock.now());
    if (traffic) await this.#parts.kv.call('PUBLISH', 'stat:metrics', JSON.stringify(traffic)).catch(() => undefined);
  }

  async #gauges(): Promise<Readonly<Record<string, number>>> {
    const { manifest, relay, clock, pool, pools } = this.#parts;
    const { active, tasks: runner, behaviour } = this.#seen();
    const state = (await relay.metrics()).get(manifest.id);
    const tasks = Object.keys(manifest.tasks).length > 0 ? await runner?.store.figures(clock.now()) : undefined;
    return {
      outbox_pending: state?.pending ?? 0,
      outbox_parked: state?.parked ?? 0,
      outbox_oldest_age_s: state?.oldest_age_s ?? 0,
      active_requests: active,
      rss_bytes: process.memoryUsage.rss(),
      database_transactions: pool.transactions,
      ...(tasks ? { tasks_due: sum(tasks, 'due'), tasks_dead: sum(tasks, 'dead') } : {}),
      ...pools.figures,
      ...behaviour?.metrics?.(),
    };
  }
}

const sum = <K extends string>(rows: readonly Readonly<Record<K, number>>[], member: K): number =>
  rows.reduce((total, row) => total + row[member], 0);
