import { type Life, type LifeEffect, type LifeEvent, type LifeSettings, NEW_LIFE, step } from './instance-life.ts';
import { NEW_UPGRADE, stepUpgrade, type Upgrade, type UpgradeEffect, type UpgradeEvent, type UpgradeSettings } from './upgrade-life.ts';

/*
 * All instances of a machine and their upgrades together, as a value: what an upgrade does to its two instances, and what becomes of them
 * for it.
 */

/** One instance, from the wish for it to its end; its processes come and go. */
export interface Slot {
  readonly id: string;
  readonly service: string;
  /** A named release, or the code on disk where it is empty. */
  readonly release: string;
  readonly life: Life;
}

export interface UpgradeRun {
  readonly old: string;
  readonly next: string;
  readonly oldRelease: string;
  readonly upgrade: Upgrade;
}

export interface FleetLife {
  readonly slots: Readonly<Record<string, Slot>>;
  /** One at most for each service. */
  readonly upgrades: Readonly<Record<string, UpgradeRun>>;
}

export type FleetEvent =
  | { readonly type: 'add'; readonly slot: string; readonly service: string; readonly release: string }
  | { readonly type: 'upgrade'; readonly old: string; readonly next: string; readonly release: string }
  | { readonly type: 'slot'; readonly slot: string; readonly event: LifeEvent }
  | { readonly type: 'run'; readonly service: string; readonly event: UpgradeEvent };

export type FleetEffect =
  | { readonly type: 'slot'; readonly slot: string; readonly effect: LifeEffect }
  | { readonly type: 'run'; readonly service: string; readonly run: UpgradeRun; readonly effect: UpgradeEffect }
  /** Its last process has ended, and no other one is wanted. */
  | { readonly type: 'gone'; readonly slot: string; readonly service: string }
  | { readonly type: 'refused'; readonly code: 'self_target' | 'upgrade_in_progress' | 'unknown_instance' };

export interface FleetSettings {
  readonly life: LifeSettings;
  readonly upgrade: UpgradeSettings;
  /** Services in the supervisor's own process: nothing here ever touches them (SUP-066, SUP-067). */
  readonly within: ReadonlySet<string>;
}

export const NEW_FLEET: FleetLife = { slots: {}, upgrades: {} };

export function stepFleet(
  fleet: FleetLife,
  event: FleetEvent,
  settings: FleetSettings,
): { readonly fleet: FleetLife; readonly effects: readonly FleetEffect[] } {
  const turn = new Turn(fleet, settings);
  turn.take(event);
  return { fleet: turn.fleet, effects: turn.effects };
}

/** Whether an upgrade has the slot as one of its two. */
export const runOf = ({ upgrades }: FleetLife, slot: string): UpgradeRun | undefined => {
  for (const service in upgrades) {
    const run = upgrades[service] as UpgradeRun;
    if (run.old === slot || run.next === slot) return run;
  }
  return undefined;
};

/** One event with everything that follows from it at once. */
class Turn {
  fleet: FleetLife;
  readonly effects: FleetEffect[] = [];
  readonly #settings: FleetSettings;

  constructor(fleet: FleetLife, settings: FleetSettings) {
    this.fleet = fleet;
    this.#settings = settings;
  }

  take(event: FleetEvent): void {
    switch (event.type) {
      case 'add':
        if (this.#settings.within.has(event.service)) return this.#refuse('self_target');
        if (this.fleet.slots[event.slot] === undefined)
          this.#put({ id: event.slot, service: event.service, release: event.release, life: NEW_LIFE });
        return;
      case 'upgrade':
        return this.#begin(event);
      case 'slot':
        return this.#slot(event.slot, event.event);
      case 'run':
        return this.#run(event.service, event.event);
    }
  }

  #begin({ old, next, release }: { old: string; next: string; release: string }): void {
    const slot = this.fleet.slots[old];
    if (!slot) return this.#refuse('unknown_instance');
    if (this.fleet.upgrades[slot.service] !== undefined) return this.#refuse('upgrade_in_progress');
    const run: UpgradeRun = { old, next, oldRelease: slot.release, upgrade: NEW_UPGRADE };
    this.fleet = { ...this.fleet, upgrades: { ...this.fleet.upgrades, [slot.service]: run } };
    this.#put({ id: next, service: slot.service, release, life: { ...NEW_LIFE, held: true } });
    this.#slot(old, { type: 'hold' });
    this.#run(slot.service, { type: 'begin' });
  }

  #slot(id: string, event: LifeEvent): void {
    const slot = this.fleet.slots[id];
    if (!slot) return;
    const { life, effects } = step(slot.life, event, this.#settings.life);
    if (life !== slot.life) this.#put({ ...slot, life });
    for (const effect of effects) {
      this.effects.push({ type: 'slot', slot: id, effect });
      if (effect.do === 'ended') this.#drop(id, slot.service);
      this.#tellUpgrade(id, slot.service, effect);
    }
  }

  /** What happens to one of an upgrade's two instances is news for the upgrade. */
  #tellUpgrade(id: string, service: string, effect: LifeEffect): void {
    const run = this.fleet.upgrades[service];
    if (!run) return;
    if (id === run.next) {
      if (effect.do === 'spawn') this.#run(service, { type: 'spawned' });
      else if (effect.do === 'up') this.#run(service, { type: 'active' });
      else if (effect.do === 'lost') this.#run(service, { type: 'next_lost', reason: `the next instance ${effect.reason}` });
      else if (effect.do === 'unwell') this.#run(service, { type: 'next_unwell', reason: `the next instance is unwell: ${effect.reason}` });
      else if (effect.do === 'ended') this.#run(service, { type: 'next_lost', reason: 'the next instance was stopped' });
    } else if (id === run.old) {
      if (effect.do === 'lost') this.#run(service, { type: 'old_lost' });
      else if (effect.do === 'ended') this.#run(service, { type: run.upgrade.stage === 'ending' ? 'old_ended' : 'old_lost' });
    }
  }

  #run(service: string, event: UpgradeEvent): void {
    const run = this.fleet.upgrades[service];
    if (!run) return;
    const { upgrade, effects } = stepUpgrade(run.upgrade, event, this.#settings.upgrade);
    const next = { ...run, upgrade };
    const { [service]: _, ...others } = this.fleet.upgrades;
    this.fleet = { ...this.fleet, upgrades: upgrade.stage === 'over' ? others : { ...others, [service]: next } };
    for (const effect of effects) {
      this.effects.push({ type: 'run', service, run: next, effect });
      this.#carry(next, effect);
    }
  }

  #carry({ old, next, oldRelease }: UpgradeRun, effect: UpgradeEffect): void {
    switch (effect.do) {
      case 'start_next':
        return this.#slot(next, { type: 'start' });
      case 'stop_next':
        return this.#slot(next, { type: 'stop' });
      case 'drain_old':
        return this.#slot(old, { type: 'drain' });
      case 'resume_old':
        return this.#slot(old, { type: 'resume' });
      case 'stop_old':
        return this.#slot(old, { type: 'stop' });
      case 'release_old':
        return this.#slot(old, { type: 'release' });
      case 'release_next':
        return this.#slot(next, { type: 'release' });
      case 'return_next': {
        const slot = this.fleet.slots[next];
        if (slot) this.#put({ ...slot, release: oldRelease });
        this.#slot(next, { type: 'release' });
        return this.#slot(next, { type: 'restart' });
      }
      default:
    }
  }

  #put(slot: Slot): void {
    this.fleet = { ...this.fleet, slots: { ...this.fleet.slots, [slot.id]: slot } };
  }

  #drop(id: string, service: string): void {
    const { [id]: _, ...slots } = this.fleet.slots;
    this.fleet = { ...this.fleet, slots };
    this.effects.push({ type: 'gone', slot: id, service });
  }

  #refuse(code: 'self_target' | 'upgrade_in_progress' | 'unknown_instance'): void {
    this.effects.push({ type: 'refused', code });
  }
}
