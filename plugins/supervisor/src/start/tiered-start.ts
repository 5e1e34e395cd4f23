import type { SupervisorContext } from '../context.ts';
import type { Catalog, Entry } from '../fleet/catalog.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { PlacementRefusal } from '../fleet/placement-gate.ts';

export interface TieredStartParts {
  readonly ctx: SupervisorContext;
  readonly catalog: Catalog;
  readonly fleet: Fleet;
  /** Why a service may not start on this machine, if so. */
  readonly refusal: (service: string) => Promise<PlacementRefusal | undefined>;
  /** Ends the waiting when the supervisor stops. */
  readonly stopping: AbortSignal;
}

/** Starts what belongs on this machine, tier by tier (SUP-006, SUP-007). */
export class TieredStart {
  readonly #parts: TieredStartParts;

  constructor(parts: TieredStartParts) {
    this.#parts = parts;
  }

  /** Each tier begins when everything of the one before is Active, or after its time. */
  async run(progress: (text: string) => void): Promise<void> {
    const { catalog, stopping } = this.#parts;
    const mine = catalog.entries().filter(({ wanted, within }) => wanted && !within);
    for (const tier of new Set(mine.map(({ start_priority }) => start_priority))) {
      if (stopping.aborted) return;
      const members = mine.filter(({ start_priority }) => start_priority === tier);
      await this.#startTier(tier, members, progress);
    }
  }

  async #startTier(tier: number, members: readonly Entry[], progress: (text: string) => void): Promise<void> {
    const { ctx, fleet, stopping } = this.#parts;
    const begun = await this.#begin(members, progress);
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(ctx.config.tierTimeoutS * 1_000)]);
    await fleet.until(() => begun.every(service => this.#isSettled(service)), signal);
    for (const service of begun.filter(each => !this.#isActive(each))) {
      const reason = fleet.slotsOf(service).map(({ life }) => life.alert ?? life.failure?.reason)[0];
      ctx.log.warn({ tier, service_type: service, reason }, 'a tier is not complete; the start goes on with the next');
      progress(`! ${service} is not active yet${reason ? `: ${reason}` : ''}; it is tried again`);
    }
  }

  async #begin(members: readonly Entry[], progress: (text: string) => void): Promise<readonly string[]> {
    const { catalog, fleet, refusal: refusalOf } = this.#parts;
    const begun: string[] = [];
    for (const { service_type, title } of members) {
      // Asked now, not when the tiers were made: somebody may have taken it out since.
      if (fleet.slotsOf(service_type).length > 0 || catalog.entry(service_type)?.withdrawn) continue;
      const refusal = await refusalOf(service_type);
      if (refusal) {
        if (refusal !== 'pin_mismatch') progress(`! ${title} is not started here: ${refusal}`);
        continue;
      }
      progress(`Starting ${title}`);
      await fleet.begin(service_type);
      begun.push(service_type);
    }
    return begun;
  }

  #isActive(service: string): boolean {
    return this.#parts.fleet.slotsOf(service).some(({ life }) => life.phase === 'running');
  }

  /** Nobody waits for what was given up, nor for somebody else's code that failed once. */
  #isSettled(service: string): boolean {
    const builtin = this.#parts.catalog.isBuiltin(service);
    const isLost = ({ life }: ReturnType<Fleet['slotsOf']>[number]) =>
      life.alert !== undefined || (!builtin && life.restarts + life.absences > 0);
    return this.#isActive(service) || this.#parts.fleet.slotsOf(service).some(isLost);
  }
}
