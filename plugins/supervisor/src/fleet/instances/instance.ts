import type { HealthAnswer, InstanceRow, ProcessId } from '@platform/sdk';
import type { Phase } from '../../life/instance-life.ts';

const LOOKS_KEPT = 10;

/** Status of the registry for each phase of a life; none where there is no process to tell of. */
export const STATUS: Readonly<Record<Phase, InstanceRow['status'] | undefined>> = {
  new: undefined,
  preparing: undefined,
  starting: 'Starting',
  running: 'Active',
  inactive: 'Inactive',
  ending: 'Killed',
  waiting: 'Killed',
  given_up: undefined,
  lost: 'Killed',
  stopping: 'Stopping',
  killing: 'Stopping',
  stopped: 'Stopped',
};

export interface Look {
  readonly at: string;
  readonly answer: string;
}

/** What is known of one instance beside its life: the process, its port, and what was seen of it. */
export class Instance {
  readonly slot: string;
  readonly service: string;
  port: number | undefined;
  process: ProcessId | undefined;
  build = '';
  startedAt = 0;
  /** It said that it is ready: it is looked at before its first fifteen seconds are over. */
  said = false;
  looking = false;
  /** Another supervisor started its process. */
  adopted = false;
  lastHealthAt: string | null = null;
  metrics = { cpu_pct: 0, mem_mb: 0, latency_ms: 0, active_connections: 0 };
  apiCalls = 0;
  errors = 0;
  /** What the registry was last told of it, and took. */
  registered: InstanceRow['status'] | undefined;
  /** Why the registry did not take its row, until it does. */
  refused: unknown;
  readonly looks: Look[] = [];
  #cpu: { readonly at: number; readonly ms: number } | undefined;

  constructor(slot: string, service: string) {
    this.slot = slot;
    this.service = service;
  }

  key(ip: string): string | undefined {
    return this.port === undefined ? undefined : `${ip}:${this.port}`;
  }

  begin(process: ProcessId, at: number): void {
    this.process = process;
    this.startedAt = at;
    this.said = false;
    this.adopted = false;
    this.registered = undefined;
    this.lastHealthAt = null;
    this.metrics = { cpu_pct: 0, mem_mb: 0, latency_ms: 0, active_connections: 0 };
    [this.apiCalls, this.errors] = [0, 0];
    this.#cpu = undefined;
  }

  /** What a look at its health has brought. */
  saw(answer: HealthAnswer, at: Date): void {
    this.looks.push({ at: at.toISOString(), answer: answer.ok ? `healthy in ${answer.latency_ms} ms` : answer.reason });
    if (this.looks.length > LOOKS_KEPT) this.looks.shift();
    if (!answer.ok) return;
    this.lastHealthAt = at.toISOString();
    this.apiCalls = answer.api_calls;
    this.errors = answer.errors;
    this.metrics = { ...this.metrics, latency_ms: answer.latency_ms, active_connections: answer.active_connections };
  }

  /** CPU share since the last sample, and memory. */
  sample(usage: { readonly cpu_ms: number; readonly rss_bytes: number } | undefined, at: number): void {
    if (!usage) return;
    const before = this.#cpu;
    this.#cpu = { at, ms: usage.cpu_ms };
    const cpu_pct =
      before && at > before.at ? Math.round(((usage.cpu_ms - before.ms) / (at - before.at)) * 1_000) / 10 : this.metrics.cpu_pct;
    this.metrics = { ...this.metrics, cpu_pct: Math.max(0, cpu_pct), mem_mb: Math.round(usage.rss_bytes / 1_048_576) };
  }
}
