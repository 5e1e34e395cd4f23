import type { UpgradeProgress } from '../../contract/schema/instance.ts';
import type { UpgradeRun } from '../life/fleet-life.ts';
import { UPGRADE_SETTINGS } from '../life/upgrade-life.ts';
import { ProgressStream } from '../progress-stream.ts';
import type { Fleet } from './fleet.ts';
import type { UpgradeLog } from './upgrade-log.ts';

/** Fewer answers say nothing of a share. */
const JUDGED_FROM = 50;

interface UpgradeWatchParts {
  readonly now: () => Date;
  readonly newId: () => string;
  readonly keyOf: (slot: string) => string | undefined;
}

/** Tells of upgrades, and judges the next instance by what it answers (G-CAP-10). */
export class UpgradeWatch {
  readonly stream = new ProgressStream();
  readonly log: UpgradeLog;
  readonly #parts: UpgradeWatchParts;
  /** By service: the upgrade that runs, or ran last. */
  readonly #known = new Map<string, UpgradeProgress>();
  /** Release that the service had before its last upgrade. */
  readonly before = new Map<string, string>();

  constructor(log: UpgradeLog, parts: UpgradeWatchParts) {
    this.log = log;
    this.#parts = parts;
  }

  get known(): readonly UpgradeProgress[] {
    return [...this.#known.values()];
  }

  operationOf(service: string): string | undefined {
    return this.#known.get(service)?.operation_id;
  }

  tell({
    run,
    service,
    phase,
    percent,
    message,
  }: {
    run: UpgradeRun;
    service: string;
    phase: string;
    percent: number;
    message: string;
  }): void {
    const { now, newId, keyOf } = this.#parts;
    const at = now().toISOString();
    const last = phase === 'starting' ? undefined : this.#known.get(service);
    const progress: UpgradeProgress = {
      operation_id: last?.operation_id ?? newId(),
      service_type: service,
      old_key: last?.old_key ?? keyOf(run.old) ?? '',
      new_key: keyOf(run.next) ?? last?.new_key ?? null,
      phase: phase as UpgradeProgress['phase'],
      percent,
      message,
      ...(run.upgrade.reason === undefined ? {} : { reason: run.upgrade.reason }),
      started_at: last?.started_at ?? at,
      updated_at: at,
    };
    this.#known.set(service, progress);
    if (phase === 'complete') this.before.set(service, run.oldRelease);
    this.stream.say(percent === 100 ? 'done' : 'progress', progress);
    void this.log.say(progress);
  }

  /** At every tick: whether the old one is quiet, and whether the next one fails too often. */
  judge(fleet: Fleet): void {
    for (const [service, run] of Object.entries(fleet.life.upgrades)) {
      const old = fleet.instances.get(run.old);
      const next = fleet.instances.get(run.next);
      if (next && next.apiCalls >= JUDGED_FROM && next.errors / next.apiCalls > UPGRADE_SETTINGS.errorShare)
        fleet.tellUpgrade(service, {
          type: 'errors',
          reason: `${next.errors} of ${next.apiCalls} answers of the next instance were errors`,
        });
      else if (run.upgrade.stage === 'quiet' && old?.metrics.active_connections === 0) fleet.tellUpgrade(service, { type: 'quiet' });
    }
  }
}
