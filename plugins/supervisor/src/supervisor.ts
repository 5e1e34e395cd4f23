import { EnrollmentSecret, type InstanceRow, type KnownProcess, type MachineUsage } from '@platform/sdk';
import { CatalogFileEntry } from '../contract/schema/catalog.ts';
import type { SupervisorContext } from './context.ts';
import { AlertBook } from './fleet/alert-book.ts';
import { Catalog, type Entry } from './fleet/catalog.ts';
import { DayTraffic } from './fleet/day-traffic.ts';
import { Fleet } from './fleet/fleet.ts';
import { Instance } from './fleet/instances/instance.ts';
import { type PlacementRefusal, placementRefusal } from './fleet/placement-gate.ts';
import { isForsaken } from './fleet/row-age.ts';
import { PortReservations } from './fleet/port-reservations.ts';
import { UpgradeLog } from './fleet/upgrade-log.ts';
import { UpgradeWatch } from './fleet/upgrade-watch.ts';
import type { Slot } from './life/fleet-life.ts';
import { LIFE_SETTINGS } from './life/instance-life.ts';
import { UPGRADE_SETTINGS } from './life/upgrade-life.ts';
import { HostSamples, isSaturated } from './machines/host-samples.ts';
import { scaledInside } from './machines/in-machine-scaler.ts';
import { ProgressStream } from './progress-stream.ts';

/** Probes are skipped so long after a start, unless the process says that it is ready (SUP-080). */
const SETTLE_MS = 15_000;
const TICK_MS = 3_000;
const TURN_MS = 250;
const LOOK_MS = 2_000;
const FRESH_MS = 30_000;
const ADOPT_STOP_MS = 10_000;

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
  readonly #within = new Map<string, Instance>();
  /** Services that were taken out of the platform while this supervisor ran. */
  readonly #takenOut = new Set<string>();
  /** The machine as this tick found it. */
  #usage: MachineUsage | undefined;
  /** Another tick part that machines are decided in. */
  onTick: (() => Promise<void>) | undefined;

  constructor(ctx: SupervisorContext) {
    this.ctx = ctx;
    const { config, kv, log, processes: machine } = ctx;
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
    this.fleet = new Fleet({
      machine,
      kv,
      ports: new PortReservations(kv, machine),
      alerts: this.alerts,
      log,
      now,
      newId: () => ctx.platform.newId(),
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
    await this.#beAlone();
    await this.samples.join(ctx.processes.ip);
    await this.#loadCatalog(progress);
    await this.#adopt(progress);
    const mine = this.catalog.entries().filter(({ wanted, within }) => wanted && !within);
    for (const tier of new Set(mine.map(({ start_priority }) => start_priority))) {
      if (this.#stopping.signal.aborted) return;
      await this.#bootTier(
        tier,
        mine.filter(({ start_priority }) => start_priority === tier),
        progress,
      );
    }
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
      this.#publishWithin().catch(error => ctx.log.debug({ err: error }, 'the rows of this process wait for the store')),
      this.#publishMachine().catch(error => ctx.log.warn({ err: error }, 'the machine could not be told of')),
      this.alerts.flush(),
      this.#scaleInside().catch(error => ctx.log.warn({ err: error }, 'a service could not be given another instance')),
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

  /** One supervisor for each machine (SUP-001): another one that answers at this address is not joined, and not fought with. */
  async #beAlone(): Promise<void> {
    const { processes: machine } = this.ctx;
    const others = (await machine.instances.rows(['captain'])).filter(
      ({ ip, pid, last_health_at: seen }) =>
        ip === machine.ip && pid !== process.pid && seen !== null && this.ctx.clock.now().getTime() - Date.parse(seen) < FRESH_MS,
    );
    for (const { port, pid } of others) {
      const answer = await machine.health('captain', port, LOOK_MS);
      if (answer.ok)
        throw new Error(
          `Another supervisor (process ${pid}) watches over ${machine.ip}. Stop it, or give this machine an address of its own by PLATFORM_CAPTAIN_IP.`,
        );
    }
  }

  /** Further lines of the catalog, and the plugins they bring (SUP-011). One that is wrong is named and passed over. */
  async #loadCatalog(progress: (text: string) => void): Promise<void> {
    const { config, catalog, log, processes: machine } = this.ctx;
    const entries = this.catalog.readFiles(config.catalogPaths.split(':').filter(Boolean), {
      check: catalog.checkOf(CatalogFileEntry),
      log,
    });
    for (const { service_type, entry, env_allow } of entries) {
      if (entry === undefined) continue;
      await machine.load(entry, env_allow).catch(error => {
        log.error({ service_type, entry, err: error, alert: 'captain.catalog.invalid' }, 'a plugin of the catalog cannot be read');
        progress(`! ${service_type} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
      });
    }
  }

  async #bootTier(tier: number, members: readonly Entry[], progress: (text: string) => void): Promise<void> {
    const { ctx, fleet } = this;
    const begun: string[] = [];
    for (const { service_type, title } of members) {
      if (fleet.slotsOf(service_type).length > 0 || this.#isWithdrawn(service_type)) continue;
      const refusal = await this.refusal(service_type, 'boot');
      if (refusal) {
        if (refusal !== 'pin_mismatch') progress(`! ${title} is not started here: ${refusal}`);
        continue;
      }
      progress(`Starting ${title}`);
      await fleet.begin(service_type);
      begun.push(service_type);
    }
    const waiting = () => begun.filter(service => !this.#isSettled(service));
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(ctx.config.tierTimeoutS * 1_000)]);
    await fleet.until(() => waiting().length === 0, signal);
    for (const service of begun.filter(each => !this.#isActive(each))) {
      const reason = fleet.slotsOf(service).map(({ life }) => life.alert ?? life.failure?.reason)[0];
      ctx.log.warn({ tier, service_type: service, reason }, 'a tier is not complete; the start goes on with the next');
      progress(`! ${service} is not active yet${reason ? `: ${reason}` : ''}; it is tried again`);
    }
  }

  #isWithdrawn(service: string): boolean {
    return this.catalog.entry(service)?.withdrawn ?? false;
  }

  #isActive(service: string): boolean {
    return this.fleet.slotsOf(service).some(({ life }) => life.phase === 'running');
  }

  /** Nobody waits for what was given up, nor for somebody else's code that failed once. */
  #isSettled(service: string): boolean {
    const builtin = this.catalog.isBuiltin(service);
    return (
      this.#isActive(service) ||
      this.fleet.slotsOf(service).some(({ life }) => life.alert !== undefined || (!builtin && life.restarts + life.absences > 0))
    );
  }

  /** Processes that outlived the supervisor before this one are kept; those that were told other things than hold now are ended. */
  async #adopt(progress: (text: string) => void): Promise<void> {
    const { processes: machine } = this.ctx;
    const found = machine.survivors();
    const keep = found.filter(({ outdated, service_type }) => {
      const entry = this.catalog.entry(service_type);
      return !outdated && entry?.within === false && !entry.withdrawn;
    });
    const rows = await this.rows();
    const rowOf = ({ service_type, port }: KnownProcess) =>
      rows.find(row => row.service_type === service_type && row.ip === machine.ip && row.port === port);
    for (const known of keep) {
      progress(`Keeping ${this.catalog.entry(known.service_type)?.title ?? known.service_type}, which runs`);
      this.fleet.adopt(known, rowOf(known));
    }
    await Promise.all(found.filter(known => !keep.includes(known)).map(known => this.#end(known)));
    const kept = new Set(keep.map(({ port }) => port));
    // Rows of processes of this machine that are gone would be taken for alive until they are stale.
    const within = new Set(this.catalog.entries().flatMap(({ service_type, within: inside }) => (inside ? [service_type] : [])));
    const isGone = ({ service_type, port, pid }: InstanceRow) => (within.has(service_type) ? pid !== process.pid : !kept.has(port));
    for (const row of rows.filter(each => each.ip === machine.ip && isGone(each))) await machine.instances.remove(row);
  }

  async #end(known: KnownProcess): Promise<void> {
    const { processes: machine, log } = this.ctx;
    log.info({ service_type: known.service_type, pid: known.pid }, 'a process of an earlier supervisor is ended: it knows other addresses');
    machine.signal(known, 'SIGTERM');
    for (let waited = 0; waited < ADOPT_STOP_MS && machine.isAlive(known); waited += 50)
      await new Promise(resolve => setTimeout(resolve, 50));
    machine.signal(known, 'SIGKILL');
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
    if (signal.aborted || this.#isWithdrawn(service) || this.fleet.slotsOf(service).length > 0) return;
    if (await this.refusal(service, 'boot')) return;
    await this.fleet
      .begin(service)
      .catch(error => this.ctx.log.error({ service_type: service, err: error }, 'a service that came later could not be started'));
  }

  /** Services that are to have another instance here, and may. */
  get growing(): readonly string[] {
    if (!this.#usage) return [];
    const services = this.catalog.entries().map(({ service_type, provision, singleton }) => ({
      service_type,
      provision,
      singleton,
      // A service that is upgraded has two for a while.
      instances: this.fleet.upgradeOfService(service_type) ? [] : this.fleet.slotsOf(service_type).map(slot => this.#sampleOf(slot)),
    }));
    return scaledInside(services, this.#usage);
  }

  #sampleOf({ id, life }: Slot) {
    const { cpu_pct = 0, mem_mb = 0 } = this.fleet.instances.get(id)?.metrics ?? {};
    return { isActive: life.phase === 'running', cpu_pct, mem_mb };
  }

  async #scaleInside(): Promise<void> {
    for (const service of this.growing) {
      if (await this.refusal(service, 'scale')) continue;
      this.ctx.log.info({ service_type: service }, 'every instance of a service is busy; it gets one more');
      await this.fleet.begin(service);
    }
  }

  /** Services in this very process are watched like all others, and never ended for what is seen (SUP-067). */
  async #publishWithin(): Promise<void> {
    const { processes: machine, clock } = this.ctx;
    const within = this.catalog.entries().flatMap(({ service_type, within: inside }) => (inside ? [service_type] : []));
    const rows = (await this.rows(within)).filter(({ ip, pid }) => ip === machine.ip && pid === process.pid);
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

  async #publishMachine(): Promise<void> {
    const { processes: machine, clock, config } = this.ctx;
    // Once a tick: it is the load since the look before, and another look would begin that time anew.
    const usage = machine.machine(config.telemetry);
    this.#usage = usage;
    const saturated = isSaturated(usage);
    const busiest = [...this.fleet.instances.values()].sort((left, right) => right.metrics.cpu_pct - left.metrics.cpu_pct)[0];
    await this.samples.publish({
      ip: machine.ip,
      ...usage,
      saturated,
      saturated_service: saturated ? (busiest?.service ?? null) : null,
      sampled_at: clock.now().toISOString(),
    });
    this.#enrollment.refresh();
    await machine.publishEnrollment(
      this.catalog.entries().map(({ service_type }) => service_type),
      this.#enrollment.value,
    );
  }
}
