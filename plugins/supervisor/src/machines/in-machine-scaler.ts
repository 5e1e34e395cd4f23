import type { MachineUsage } from '@platform/sdk';
import type { SupervisorContext } from '../context.ts';
import type { Catalog } from '../fleet/catalog.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { PlacementRefusal } from '../fleet/placement-gate.ts';
import type { Slot } from '../life/fleet-life.ts';

/** As many of one service on one machine, however busy they are: more would only take from each other. */
const MOST = 4;

interface Scalable {
  readonly service_type: string;
  readonly provision: { readonly cpu_pct: number; readonly mem_pct: number };
  readonly singleton: boolean;
  readonly instances: readonly { readonly isActive: boolean; readonly cpu_pct: number; readonly mem_mb: number }[];
}

/**
 * The services that get one more instance on this machine at this look: those whose instances are all in turn and all above a threshold of
 * their line of the catalog. One of each at most (SUP-048). What the platform ships has thresholds that no sample reaches (SUP-047); a line
 * that somebody merged may have others.
 */
export function scaledInside(services: readonly Scalable[], { mem_pct, used_mb }: MachineUsage): readonly string[] {
  const totalMb = mem_pct > 0 ? (used_mb * 100) / mem_pct : Number.POSITIVE_INFINITY;
  return services
    .filter(({ provision, singleton, instances }) => {
      // Samples of several threads may come to more than a whole core, and a threshold above a hundred stands for never.
      const isBusy = ({ cpu_pct, mem_mb }: Scalable['instances'][number]) =>
        Math.min(100, cpu_pct) >= provision.cpu_pct || (mem_mb * 100) / totalMb >= provision.mem_pct;
      const { length } = instances;
      return !singleton && length > 0 && length < MOST && instances.every(instance => instance.isActive && isBusy(instance));
    })
    .map(({ service_type }) => service_type);
}

export interface InMachineScalerParts {
  readonly ctx: SupervisorContext;
  readonly catalog: Catalog;
  readonly fleet: Fleet;
  /** Why a service may not start another instance here, if so. */
  readonly refusal: (service: string) => Promise<PlacementRefusal | undefined>;
  /** The machine as the last tick found it. */
  readonly usage: () => MachineUsage | undefined;
}

/** Gives a busy service another instance on this machine. */
export class InMachineScaler {
  readonly #parts: InMachineScalerParts;

  constructor(parts: InMachineScalerParts) {
    this.#parts = parts;
  }

  /** Services that are to have another instance here, and may. */
  get growing(): readonly string[] {
    const { catalog, fleet, usage } = this.#parts;
    const seen = usage();
    if (!seen) return [];
    const services = catalog.entries().map(({ service_type, provision, singleton }) => ({
      service_type,
      provision,
      singleton,
      // A service that is upgraded has two for a while.
      instances: fleet.upgradeOfService(service_type) ? [] : fleet.slotsOf(service_type).map(slot => this.#sampleOf(slot)),
    }));
    return scaledInside(services, seen);
  }

  async scale(): Promise<void> {
    const { ctx, fleet, refusal } = this.#parts;
    for (const service of this.growing) {
      if (await refusal(service)) continue;
      ctx.log.info({ service_type: service }, 'every instance of a service is busy; it gets one more');
      await fleet.begin(service);
    }
  }

  #sampleOf({ id, life }: Slot) {
    const { cpu_pct = 0, mem_mb = 0 } = this.#parts.fleet.instances.get(id)?.metrics ?? {};
    return { isActive: life.phase === 'running', cpu_pct, mem_mb };
  }
}
