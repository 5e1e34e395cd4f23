import type { InstanceRow, KnownProcess } from '@platform/sdk';
import {
  type FleetEffect,
  type FleetEvent,
  type FleetLife,
  NEW_FLEET,
  runOf,
  type Slot,
  stepFleet,
  type UpgradeRun,
} from '../life/fleet-life.ts';
import type { LifeEffect, LifeEvent } from '../life/instance-life.ts';
import type { UpgradeEffect, UpgradeEvent } from '../life/upgrade-life.ts';
import { Changes } from './changes.ts';
import { Deadlines } from './deadlines.ts';
import type { FleetParts } from './fleet-parts.ts';
import { HealthLooks } from './instances/health-looks.ts';
import { Incidents } from './instances/incidents.ts';
import { Instance } from './instances/instance.ts';
import { InstanceRows } from './instances/instance-rows.ts';
import { ownerOf, ProcessMaking } from './instances/process-making.ts';

/** Carries out on this machine what {@link stepFleet} decides of all its instances. */
export class Fleet {
  readonly #parts: FleetParts;
  readonly instances = new Map<string, Instance>();
  /** By slot: the attempt that a timer is for. */
  readonly #deadlines = new Deadlines<number>();
  /** By service, of its upgrade. */
  readonly #runDeadlines = new Deadlines<undefined>();
  /** By slot: what an instance out of turn is told. */
  readonly #leaving = new Deadlines<LifeEvent>();
  readonly #making: ProcessMaking;
  readonly #looks: HealthLooks;
  readonly #changes = new Changes();
  readonly #rows: InstanceRows;
  readonly #incidents: Incidents;
  #life: FleetLife = NEW_FLEET;
  #slots = 0;

  constructor(parts: FleetParts) {
    this.#parts = parts;
    this.#incidents = new Incidents({ ...parts, restartsOf: ({ slot }) => this.slot(slot)?.life.restarts ?? 0 });
    const lives = { slot: (id: string) => this.slot(id), tell: (slot: string, event: LifeEvent) => this.tell(slot, event) };
    this.#making = new ProcessMaking({ ...parts, ...lives, begun: instance => this.#write(instance, true) });
    this.#looks = new HealthLooks({ ...parts, ...lives });
    this.#rows = new InstanceRows({
      machine: parts.machine,
      log: parts.log,
      versionOf: parts.versionOf,
      slot: id => this.slot(id),
      written: instance => this.#registered(instance),
    });
  }

  get life(): FleetLife {
    return this.#life;
  }

  slot(id: string): Slot | undefined {
    return this.#life.slots[id];
  }

  slotsOf(service: string): Slot[] {
    return Object.values(this.#life.slots).filter(slot => slot.service === service);
  }

  upgradeOf(slot: string): UpgradeRun | undefined {
    return runOf(this.#life, slot);
  }

  upgradeOfService(service: string): UpgradeRun | undefined {
    return this.#life.upgrades[service];
  }

  /** Begins an instance; its port is taken by the time this answers. */
  async begin(service: string, release = ''): Promise<Instance> {
    const instance = this.#newInstance(service);
    instance.port = await this.#parts.ports.reserve(ownerOf(instance.slot));
    this.#hear({ type: 'add', slot: instance.slot, service, release });
    this.tell(instance.slot, { type: 'start' });
    return instance;
  }

  /**
   * Resolves when its process is there and the registry has its row, or when the signal ends: it goes on then. Where one of them failed the
   * instance goes, and this throws (SUP-111).
   */
  async begun(instance: Instance, signal: AbortSignal): Promise<void> {
    const { slot } = instance;
    const failed = () => {
      const phase = this.slot(slot)?.life.phase;
      const made = instance.startedAt > 0;
      return instance.refused !== undefined || (!made && (phase === undefined || phase === 'waiting' || phase === 'given_up'));
    };
    const settled = () => failed() || instance.registered !== undefined || this.slot(slot) === undefined;
    await this.until(settled, signal);
    if (!failed()) return;
    this.tell(slot, { type: 'stop' });
    throw new Error(`an instance of ${instance.service} could not be started`, { cause: instance.refused });
  }

  /** Takes over a process that another supervisor of this machine started. */
  adopt(known: KnownProcess, row: InstanceRow | undefined): Instance {
    const instance = this.#newInstance(known.service_type);
    instance.port = known.port;
    instance.build = known.build;
    instance.begin({ pid: known.pid, started: known.started }, row ? Date.parse(row.started_at) : this.#parts.now().getTime());
    instance.adopted = true;
    this.#hear({ type: 'add', slot: instance.slot, service: known.service_type, release: known.release });
    this.tell(instance.slot, { type: 'adopt' });
    return instance;
  }

  /** Begins a rolling upgrade; answers the key of the next instance, or why not. */
  async upgrade(old: Slot, release: string): Promise<Instance | 'self_target' | 'upgrade_in_progress' | 'unknown_instance'> {
    if (this.#life.upgrades[old.service]) return 'upgrade_in_progress';
    const next = this.#newInstance(old.service);
    next.port = await this.#parts.ports.reserve(ownerOf(next.slot));
    const refused = this.#hear({ type: 'upgrade', old: old.id, next: next.slot, release }).find(effect => effect.type === 'refused');
    if (!refused) return next;
    this.instances.delete(next.slot);
    this.#free(next);
    return refused.code;
  }

  tell(slot: string, event: LifeEvent): void {
    this.#hear({ type: 'slot', slot, event });
  }

  /** Takes an instance out of turn, and tells it the rest when every router has had time to see that: until then it refuses nobody. */
  leave(slot: string, event: LifeEvent): void {
    this.tell(slot, { type: 'drain' });
    this.#leaving.set(slot, this.#parts.now().getTime() + this.#parts.settings.upgrade.seenMs, event);
  }

  tellUpgrade(service: string, event: UpgradeEvent): void {
    this.#hear({ type: 'run', service, event });
  }

  /** Resolves when `done` says so of the present state, or when the signal ends. */
  until(done: () => boolean, signal: AbortSignal): Promise<boolean> {
    return this.#changes.until(done, signal);
  }

  /** Runs what has fallen due. */
  turn(): void {
    const now = this.#parts.now().getTime();
    this.#deadlines.take(now, (slot, attempt) => this.tell(slot, { type: 'timer', attempt }));
    this.#leaving.take(now, (slot, event) => this.tell(slot, event));
    this.#runDeadlines.take(now, service => this.tellUpgrade(service, { type: 'timer' }));
  }

  /**
   * First of every tick: processes that ended without our hearing of it (G-CAP-10). Between ticks only those that are asked for often: one
   * that is no child of ours says nothing when it ends.
   */
  reap({ adoptedOnly = false } = {}): void {
    for (const [slot, instance] of this.instances) {
      const { process, adopted } = instance;
      if (adoptedOnly && !adopted) continue;
      const life = this.slot(slot)?.life;
      if (!process || !life || this.#parts.machine.isAlive(process)) continue;
      this.#making.ended(instance, life.attempt, 'ended');
    }
  }

  /** Then looks at the health of everything that is due. */
  look(settleMs: number): Promise<void> {
    return this.#looks.due(this.instances.values(), settleMs);
  }

  /** Last: samples, and rows as they are now. */
  publish(): void {
    const now = this.#parts.now().getTime();
    this.#rows.removeAgain();
    for (const instance of this.instances.values()) {
      if (!instance.process) continue;
      instance.sample(this.#parts.machine.usage(instance.process), now);
      this.#write(instance, false);
    }
  }

  /** Resolves when every row that was to be written is. */
  async settled(): Promise<void> {
    await this.#rows.settled();
  }

  #newInstance(service: string): Instance {
    const instance = new Instance(`${service}#${++this.#slots}`, service);
    this.instances.set(instance.slot, instance);
    return instance;
  }

  #hear(event: FleetEvent): readonly FleetEffect[] {
    const { fleet, effects } = stepFleet(this.#life, event, this.#parts.settings);
    this.#life = fleet;
    for (const effect of effects) this.#carryOut(effect);
    this.#changes.tell();
    return effects;
  }

  #carryOut(effect: FleetEffect): void {
    if (effect.type === 'slot') {
      const instance = this.instances.get(effect.slot);
      if (instance) this.#carryOutOf(instance, effect.effect);
    } else if (effect.type === 'run') this.#carryOutRun(effect);
    else if (effect.type === 'gone') this.#forget(effect.slot);
  }

  #carryOutOf(instance: Instance, effect: LifeEffect): void {
    const { machine, now } = this.#parts;
    switch (effect.do) {
      case 'prepare':
        return void this.#making.prepare(instance, effect.attempt);
      case 'spawn':
        return this.#making.spawn(instance, effect.attempt);
      case 'kill':
        if (instance.process) machine.signal(instance.process, effect.signal);
        return this.#write(instance, true);
      case 'arm':
        return this.#deadlines.set(instance.slot, now().getTime() + effect.ms, effect.attempt);
      case 'disarm':
        return this.#deadlines.delete(instance.slot);
      case 'look':
        instance.said = true;
        return void this.#looks.look(instance);
      case 'up':
      case 'drained':
        return this.#write(instance, true);
      case 'clear':
        return this.#incidents.over(instance);
      case 'lost':
        this.#incidents.lostInUpgrade(instance, effect.reason);
        return this.#write(instance, true);
      case 'down':
        this.#incidents.down(instance, effect);
        return this.#write(instance, true);
      case 'raise':
        this.#incidents.givenUp(instance, effect);
        this.#remove(instance);
        this.#free(instance);
        instance.port = undefined;
        return;
      default:
    }
  }

  /** An upgrade goes on when the registry has taken both: that the next one is in turn, and that the old one is not. */
  #registered({ slot, service }: Instance): void {
    this.#changes.tell();
    const run = this.upgradeOf(slot);
    if (run?.upgrade.stage !== 'told') return;
    const of = (id: string) => this.instances.get(id)?.registered;
    if (of(run.old) === 'Inactive' && of(run.next) === 'Active') this.tellUpgrade(service, { type: 'told' });
  }

  #carryOutRun({ service, run, effect }: { service: string; run: UpgradeRun; effect: UpgradeEffect }): void {
    if (effect.do === 'arm') this.#runDeadlines.set(service, this.#parts.now().getTime() + effect.ms, undefined);
    else if (effect.do === 'disarm') this.#runDeadlines.delete(service);
    else if (effect.do === 'tell') {
      const port = this.instances.get(run.next)?.port;
      // The reservation of the next one's port lasts no shorter than the upgrade does (H-30).
      if (port !== undefined) void this.#parts.ports.renew(ownerOf(run.next), port).catch(() => undefined);
      this.#parts.tell({ run, service, phase: effect.phase, percent: effect.percent, message: effect.message });
    }
  }

  #forget(slot: string): void {
    const instance = this.instances.get(slot);
    this.instances.delete(slot);
    this.#leaving.delete(slot);
    this.#deadlines.delete(slot);
    this.#making.forget(slot);
    if (!instance) return;
    this.#remove(instance);
    this.#free(instance);
  }

  /** A reservation that could not be given back ends by itself within a minute (G-CAP-10). */
  #free({ port }: Instance): void {
    if (port !== undefined)
      void this.#parts.ports
        .free(port)
        .catch(error => this.#parts.log.debug({ port, err: error }, 'a port stays reserved until its minute is over'));
  }

  #remove(instance: Instance): void {
    this.#rows.remove(instance);
    if (instance.port !== undefined) this.#parts.changed(undefined, instance);
  }

  #write(instance: Instance, tell: boolean): void {
    if (instance.port === undefined || !instance.process) return;
    if (tell) this.#parts.changed(this.slot(instance.slot), instance);
    this.#rows.write(instance, tell);
  }
}
