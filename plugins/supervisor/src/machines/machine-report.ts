import type { EnrollmentSecret, InstanceRow, MachineUsage } from '@platform/sdk';
import type { SupervisorContext } from '../context.ts';
import type { Catalog } from '../fleet/catalog.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { Instance } from '../fleet/instances/instance.ts';
import { type HostSamples, isSaturated } from './host-samples.ts';

const LOOK_MS = 2_000;

export interface MachineReportParts {
  readonly ctx: SupervisorContext;
  readonly catalog: Catalog;
  readonly fleet: Fleet;
  readonly samples: HostSamples;
  readonly enrollment: EnrollmentSecret;
  readonly rows: (services: readonly string[]) => Promise<readonly InstanceRow[]>;
}

/** What this machine says of itself at every tick: its load, and the services in the supervisor's own process. */
export class MachineReport {
  readonly #parts: MachineReportParts;
  readonly #within = new Map<string, Instance>();
  #usage: MachineUsage | undefined;

  constructor(parts: MachineReportParts) {
    this.#parts = parts;
  }

  /** The machine as this tick found it; undefined before the first. */
  get usage(): MachineUsage | undefined {
    return this.#usage;
  }

  /** Services in this very process are watched like all others, and never ended for what is seen (SUP-067). */
  async publishWithin(): Promise<void> {
    const { catalog, ctx, rows: read } = this.#parts;
    const { processes: machine, clock } = ctx;
    const within = catalog.entries().flatMap(({ service_type, within: inside }) => (inside ? [service_type] : []));
    const rows = (await read(within)).filter(({ ip, pid }) => ip === machine.ip && pid === process.pid);
    const now = clock.now();
    const started = { pid: process.pid, started: 'self' };
    for (const { service_type, ip, port } of rows) {
      const seen = this.#within.get(service_type) ?? new Instance(service_type, service_type);
      this.#within.set(service_type, seen);
      const answer = await machine.health(service_type, port, LOOK_MS);
      seen.saw(answer, now);
      seen.sample(machine.usage(started), now.getTime());
      await machine.instances.write({ service_type, ip, port, metrics: seen.metrics, api_calls: seen.apiCalls }, false);
    }
  }

  /** Publishes the load of the machine (SUP-073), and the secret that its processes enroll with. */
  async publishMachine(): Promise<void> {
    const { catalog, ctx, fleet, samples, enrollment } = this.#parts;
    const { processes: machine, clock, config } = ctx;
    // Once a tick: it is the load since the look before, and another look would begin that time anew.
    const usage = machine.machine(config.telemetry);
    this.#usage = usage;
    const saturated = isSaturated(usage);
    const busiest = [...fleet.instances.values()].sort((left, right) => right.metrics.cpu_pct - left.metrics.cpu_pct)[0];
    await samples.publish({
      ip: machine.ip,
      ...usage,
      saturated,
      saturated_service: saturated ? (busiest?.service ?? null) : null,
      sampled_at: clock.now().toISOString(),
    });
    enrollment.refresh();
    const services = catalog.entries().map(({ service_type }) => service_type);
    await machine.publishEnrollment(services, enrollment.value);
  }
}
