import { EnrollmentSecret, type InstanceRow } from '@platform/sdk';
import type { SupervisorContext } from './context.ts';
import { AlertBook } from './fleet/alert-book.ts';
import { Catalog } from './fleet/catalog.ts';
import { DayTraffic } from './fleet/day-traffic.ts';
import { Fleet } from './fleet/fleet.ts';
import { type PlacementRefusal, placementRefusal } from './fleet/placement-gate.ts';
import { isForsaken } from './fleet/row-age.ts';
import { PortReservations } from './fleet/port-reservations.ts';
import { UpgradeLog } from './fleet/upgrade-log.ts';
import { UpgradeWatch } from './fleet/upgrade-watch.ts';
import { LIFE_SETTINGS } from './life/instance-life.ts';
import { UPGRADE_SETTINGS } from './life/upgrade-life.ts';
import { HostSamples } from './machines/host-samples.ts';
import { InMachineScaler } from './machines/in-machine-scaler.ts';
import { MachineReport } from './machines/machine-report.ts';
import { ProgressStream } from './progress-stream.ts';
import { Adoption } from './start/adoption.ts';
import { loadCatalogPlugins } from './start/catalog-plugins.ts';
import { beSoleSupervisor } from './start/sole-supervisor.ts';
import { TieredStart } from './start/tiered-start.ts';

/** Probes are skipped so long after a start, unless the process says that it is ready (SUP-080). */
const SETTLE_MS = 15_000;
const TICK_MS = 3_000;
const TURN_MS = 250;

/** Watches over this machine: starts what belongs here tier by tier, and sees to it that nothing stays down. */
export class Supervisor {
  readonly ctx: SupervisorContext;
  readonly catalog: Catalog;
  readonly fleet: Fleet;
  readonly alerts: AlertBook;
  readonly samples: HostSamples;
  readonly upgrades: UpgradeWatch;
  readonly today: DayTraffic;
  readonly startup = new ProgressStream();
  readonly shutdown = new ProgressStream();
  readonly #enrollment: EnrollmentSecret;
  readonly #stopping = new AbortController();
  readonly #adoption: Adoption;
  readonly #start: TieredStart;
  readonly #report: MachineReport;
  readonly #scaler: InMachineScaler;
  /** Services that were taken out of the platform while this supervisor ran. */
  readonly #takenOut = new Set<string>();
  /** Another tick part that machines are decided in. */
  onTick: (() => Promise<void>) | undefined;

  constructor(ctx: SupervisorContext) {
    this.ctx = ctx;
    const { kv, log, processes: machine } = ctx;
    const now = () => ctx.clock.now();
    this.catalog = new Catalog(machine);
    this.alerts = new AlertBook({ kv, sql: ctx.db.sql, machine, log });
    this.samples = new HostSamples(kv);
    this.today = new DayTraffic(log, now);
    this.upgrades = new UpgradeWatch(new UpgradeLog(kv, log), {
      now,
      newId: () => ctx.platform.newId(),
      keyOf: slot => this.fleet.instances.get(slot)?.key(machine.ip),
    });
    this.#enrollment = new EnrollmentSecret(ctx.platform.dataDir, () => now().getTime());
    this.fleet = this.#newFleet();
    const parts = { ctx, catalog: this.catalog, fleet: this.fleet, rows: (services?: readonly string[]) => this.rows(services) };
    this.#adoption = new Adoption(parts);
    this.#start = new TieredStart({
      ...parts,
      refusal: service => this.refusal(service, 'boot'),
      stopping: this.#stopping.signal,
    });
    this.#report = new MachineReport({ ...parts, samples: this.samples, enrollment: this.#enrollment });
    this.#scaler = new InMachineScaler({
      ...parts,
      refusal: service => this.refusal(service, 'scale'),
      usage: () => this.#report.usage,
    });
  }

  /** Services that are to have another instance here, and may. */
  get growing(): readonly string[] {
    return this.#scaler.growing;
  }

  /** The address `pin:edge` stands for: the operator's word, else the first machine of the fleet (SUP-014). */
  async edgeIp(): Promise<string> {
    return this.ctx.config.edgeIp || ((await this.samples.order())[0] ?? this.ctx.processes.ip);
  }

  rows(services: readonly string[] = this.catalog.entries().map(({ service_type }) => service_type)): Promise<readonly InstanceRow[]> {
    return this.ctx.processes.instances.rows(services);
  }

  /** The placement gate for this machine; a refusal is logged under its name (SUP-109). */
  async refusal(service: string, where: 'boot' | 'start' | 'scale' | 'remote' | 'respawn'): Promise<PlacementRefusal | undefined> {
    const entry = this.catalog.entry(service);
    if (!entry) return undefined;
    const now = this.ctx.clock.now();
    const rows = (await this.rows()).filter(row => !isForsaken(row, now));
    const refusal = placementRefusal({ service: entry, ip: this.ctx.processes.ip, edgeIp: await this.edgeIp(), rows });
    if (refusal)
      this.ctx.log[refusal === 'pin_mismatch' && where === 'boot' ? 'info' : 'warn'](
        { alert: refusal, service_type: service, where },
        'a service may not start on this machine',
      );
    return refusal;
  }

  /** Begins to keep time: from here on everything that falls due is done. */
  begin(): void {
    const { ctx } = this;
    ctx.own(
      ctx.every(TURN_MS, () => {
        this.fleet.reap({ adoptedOnly: true });
        this.fleet.turn();
      }),
    );
    ctx.own(ctx.every(TICK_MS, () => this.tick()));
    ctx.own(
      ctx.processes.onRunnable(({ service_type, withdrawn }) =>
        withdrawn ? this.#takeOut(service_type) : void this.#startLate(service_type),
      ),
    );
  }

  /** Tier by tier: each begins when everything of the one before is Active, or after its time (SUP-006, SUP-007). */
  async boot(progress: (text: string) => void): Promise<void> {
    const { ctx } = this;
    await beSoleSupervisor(ctx);
    await this.samples.join(ctx.processes.ip);
    await loadCatalogPlugins(ctx, this.catalog, progress);
    await this.#adoption.run(progress);
    await this.#start.run(progress);
    if (this.#stopping.signal.aborted) return;
    this.startup.say('done', { at: ctx.clock.now().toISOString() });
  }

  /** One look at everything (SUP-004): reap, look, heal, publish. */
  async tick(): Promise<void> {
    const { fleet, ctx } = this;
    if (this.#stopping.signal.aborted) return fleet.reap();
    fleet.reap();
    await fleet.look(SETTLE_MS);
    this.upgrades.judge(fleet);
    fleet.publish();
    // Beside each other: while the store does not answer, the next look waits for one of them and not for each.
    await Promise.all([
      this.#report.publishWithin().catch(error => ctx.log.debug({ err: error }, 'the rows of this process wait for the store')),
      this.#report.publishMachine().catch(error => ctx.log.warn({ err: error }, 'the machine could not be told of')),
      this.alerts.flush(),
      this.#scaler.scale().catch(error => ctx.log.warn({ err: error }, 'a service could not be given another instance')),
      this.onTick?.().catch(error => ctx.log.warn({ err: error }, 'the machines of the fleet could not be judged')),
    ]);
  }

  /** Ends every process of this machine, the last tier first (G-CAP-07). */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const tierOf = (service: string) => this.catalog.entry(service)?.start_priority ?? 0;
    await this.#leaveTurn();
    const slots = Object.values(this.fleet.life.slots);
    const tiers = [...new Set(slots.map(({ service }) => tierOf(service)))].sort((left, right) => right - left);
    for (const tier of tiers) {
      const members = Object.values(this.fleet.life.slots).filter(({ service }) => tierOf(service) === tier);
      for (const { id, service } of members) {
        this.shutdown.say('progress', { service_type: service, phase: 'stopping' });
        this.fleet.tell(id, { type: 'stop' });
      }
      // Every life has deadlines of its own: this ends.
      await this.fleet.until(() => members.every(({ id }) => this.fleet.slot(id) === undefined), new AbortController().signal);
    }
    await this.fleet.settled();
    await this.samples.leave(this.ctx.processes.ip).catch(() => undefined);
    this.#enrollment.clear();
    this.shutdown.say('done', { at: this.ctx.clock.now().toISOString() });
    for (const stream of [this.shutdown, this.startup, this.upgrades.stream]) stream.end();
  }

  /** Other machines go on: their routers leave what ends here before it refuses anybody. */
  async #leaveTurn(): Promise<void> {
    const order = await this.samples.order().catch(() => []);
    if (order.length < 2) return;
    for (const { id, life } of Object.values(this.fleet.life.slots)) if (life.phase === 'running') this.fleet.tell(id, { type: 'drain' });
    await this.fleet.settled();
    await new Promise(resolve => setTimeout(resolve, UPGRADE_SETTINGS.seenMs));
  }

  /** Somebody took a service out of the platform: routers leave its instances, which then end what they have begun. */
  #takeOut(service: string): void {
    this.ctx.log.info({ service_type: service }, 'a service was taken out of the platform; its instances end');
    this.#takenOut.add(service);
    if (this.fleet.upgradeOfService(service)) this.fleet.tellUpgrade(service, { type: 'abort', reason: 'the service was taken out' });
    for (const { id, life } of this.fleet.slotsOf(service)) {
      if (life.phase === 'running') this.fleet.leave(id, { type: 'stop' });
      else this.fleet.tell(id, { type: 'stop' });
    }
  }

  async #startLate(service: string): Promise<void> {
    const { signal } = this.#stopping;
    // Brought back before it had ended: the next one does not begin beside it.
    if (this.#takenOut.delete(service)) await this.fleet.until(() => this.fleet.slotsOf(service).length === 0, signal);
    if (signal.aborted || this.catalog.entry(service)?.withdrawn || this.fleet.slotsOf(service).length > 0) return;
    if (await this.refusal(service, 'boot')) return;
    await this.fleet
      .begin(service)
      .catch(error => this.ctx.log.error({ service_type: service, err: error }, 'a service that came later could not be started'));
  }

  #newFleet(): Fleet {
    const { config, kv, log, processes: machine, clock, platform } = this.ctx;
    return new Fleet({
      machine,
      kv,
      ports: new PortReservations(kv, machine),
      alerts: this.alerts,
      log,
      now: () => clock.now(),
      newId: () => platform.newId(),
      versionOf: service => this.catalog.entry(service)?.version ?? '0.0.0',
      refusal: service => this.refusal(service, 'respawn'),
      tell: progress => this.upgrades.tell(progress),
      changed: (slot, instance) =>
        this.startup.say('progress', {
          service_type: instance.service,
          instance_key: instance.key(machine.ip) ?? null,
          phase: slot?.life.phase ?? 'gone',
          alert: slot?.life.alert ?? null,
        }),
      settings: {
        within: new Set(machine.runnable().flatMap(({ service_type, within }) => (within ? [service_type] : []))),
        life: {
          ...LIFE_SETTINGS,
          maxRestarts: config.maxRestarts,
          lastResortMs: config.lastResortS * 1_000,
          graceMs: config.graceS * 1_000,
        },
        upgrade: { ...UPGRADE_SETTINGS, stableMs: config.upgradeWindowS * 1_000, drainMs: config.drainS * 1_000 },
      },
    });
  }
}
