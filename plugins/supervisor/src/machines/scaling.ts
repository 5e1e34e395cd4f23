/*
 * When a machine is asked for and when one is given back, as a value (SUP-050 to SUP-055): what the fleet looks like goes in, one decision
 * comes out.
 */

export interface ScalingSettings {
  readonly saturatedMs: number;
  readonly idleMs: number;
  readonly provisionCooldownMs: number;
  readonly deprovisionCooldownMs: number;
  readonly min: number;
  readonly max: number;
  /** Below this on every machine the fleet is idle. */
  readonly idleCpuPct: number;
}

export const SCALING: ScalingSettings = {
  saturatedMs: 60_000,
  idleMs: 600_000,
  provisionCooldownMs: 300_000,
  deprovisionCooldownMs: 600_000,
  min: 1,
  max: 1,
  idleCpuPct: 30,
};

export type Profile = 'auto' | 'manual' | 'never';

/** A word that nobody knows adds no machine (SUP-052). */
export const profileOf = (word: string): Profile => (word === 'auto' || word === 'manual' ? word : 'never');

/** What the leader keeps between two looks; the next leader goes on from it. */
export interface ScalingMemory {
  readonly saturated_since: number | null;
  readonly idle_since: number | null;
  readonly cooldown_until: number;
  readonly retire_after: number;
}

export const NO_MEMORY: ScalingMemory = { saturated_since: null, idle_since: null, cooldown_until: 0, retire_after: 0 };

export interface FleetSight {
  readonly now: number;
  /** In the order they came; the first is the base machine. */
  readonly machines: readonly {
    readonly ip: string;
    readonly cpu_pct: number;
    readonly saturated: boolean;
    readonly saturated_service: string | null;
  }[];
  /** How many there are, those that say nothing too. */
  readonly count: number;
  /** Inside a machine something could still be added; never so with the pinned thresholds (SUP-047). */
  readonly inMachine: boolean;
  /** Whether the machine admits another instance of the service. */
  readonly admits: (ip: string, service: string) => boolean;
}

export type ScalingDecision =
  | { readonly do: 'nothing' }
  | { readonly do: 'spawn'; readonly ip: string; readonly service: string }
  | { readonly do: 'provision'; readonly reason: string }
  /** More is needed, and the fleet is as large as it may be. */
  | { readonly do: 'full'; readonly reason: string }
  | { readonly do: 'retire'; readonly ip: string; readonly reason: string };

export function judgeFleet(
  memory: ScalingMemory,
  sight: FleetSight,
  settings: ScalingSettings,
): { readonly memory: ScalingMemory; readonly decision: ScalingDecision } {
  const { now, machines } = sight;
  const saturated = machines.filter(machine => machine.saturated);
  const idle = machines.length > 0 && machines.every(({ cpu_pct, saturated: full }) => !full && cpu_pct < settings.idleCpuPct);
  const next: ScalingMemory = {
    ...memory,
    saturated_since: saturated.length > 0 ? (memory.saturated_since ?? now) : null,
    idle_since: idle ? (memory.idle_since ?? now) : null,
  };
  const wait = { memory: next, decision: { do: 'nothing' } as const };
  if (next.saturated_since !== null && now - next.saturated_since >= settings.saturatedMs)
    return grow(next, saturated, sight, settings) ?? wait;
  // After load, which may only need what is there: a machine that cannot be made keeps nobody from it.
  if (sight.count < settings.min) return fill(next, sight, settings) ?? wait;
  if (next.idle_since !== null && now - next.idle_since >= settings.idleMs) return shrink(next, sight, settings) ?? wait;
  return wait;
}

/** A fleet that is smaller than its least size grows, whatever its load (G-CAP-11). */
function fill(memory: ScalingMemory, { now, count }: FleetSight, { min, provisionCooldownMs }: ScalingSettings) {
  if (now < memory.cooldown_until) return undefined;
  const reason = `${count} of at least ${min} machines are there`;
  return { memory: { ...memory, cooldown_until: now + provisionCooldownMs }, decision: { do: 'provision', reason } as const };
}

function grow(
  memory: ScalingMemory,
  saturated: FleetSight['machines'],
  { now, machines, count, inMachine, admits }: FleetSight,
  settings: ScalingSettings,
) {
  if (inMachine || now < memory.cooldown_until) return undefined;
  const rested = { ...memory, saturated_since: null, cooldown_until: now + settings.provisionCooldownMs };
  // What is there comes first: the machine with the least to do that takes the workload (SUP-053).
  const least = machines.filter(machine => !machine.saturated).sort((left, right) => left.cpu_pct - right.cpu_pct);
  for (const { saturated_service: service } of saturated) {
    const found = service === null ? undefined : least.find(({ ip }) => admits(ip, service));
    if (found && service !== null) return { memory: rested, decision: { do: 'spawn', ip: found.ip, service } as const };
  }
  const reason = `${saturated
    .map(({ ip, saturated_service }) => `${ip}${saturated_service ? ` (${saturated_service})` : ''}`)
    .join(', ')} saturated for ${Math.round((now - (memory.saturated_since ?? now)) / 1_000)} s`;
  if (count >= settings.max) return { memory: rested, decision: { do: 'full', reason } as const };
  return { memory: rested, decision: { do: 'provision', reason } as const };
}

/** The newest goes first, and never the base (SUP-054, SUP-055). */
function shrink(memory: ScalingMemory, { now, machines, count }: FleetSight, settings: ScalingSettings) {
  const newest = machines.slice(1).at(-1);
  if (!newest || count <= settings.min || now < memory.retire_after) return undefined;
  const reason = `the fleet is idle for ${Math.round((now - (memory.idle_since ?? now)) / 1_000)} s`;
  return {
    memory: { ...memory, idle_since: null, retire_after: now + settings.deprovisionCooldownMs },
    decision: { do: 'retire', ip: newest.ip, reason } as const,
  };
}
