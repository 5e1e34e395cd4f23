import type { MachineUsage } from '@platform/sdk';

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
