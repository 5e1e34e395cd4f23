import { FLEET_KEYS } from '@platform/sdk';
import type { Static } from '@platform/sdk/contract';
import type { Autoscaler } from '../../contract/schema/machine.ts';
import type { Asker, ControlGate } from '../control/control-gate.ts';
import type { SupervisorContext } from '../context.ts';
import { placementRefusal } from '../fleet/placement-gate.ts';
import { isForsaken } from '../fleet/row-age.ts';
import type { Supervisor } from '../supervisor.ts';
import { Leadership } from './leadership.ts';
import { PendingDecisions } from './pending-decisions.ts';
import { judgeFleet, NO_MEMORY, profileOf, SCALING, type ScalingDecision, type ScalingMemory } from './scaling.ts';

const MEMORY = FLEET_KEYS.machinesMemory;
const SPAWN_TIMEOUT_MS = 10_000;
const LEAVE_TIMEOUT_MS = 10_000;

/** Makes machines and takes them away. */
export interface Provisioner {
  readonly kind: string;
  /** Why it cannot work here, in one line; nothing where it can. */
  unable(): string | undefined;
  /** Makes the next machine, which joins the fleet by itself. Answers its address. */
  create(name: string): Promise<string>;
  /** Names of the machines that it made and that are there. */
  names(): readonly string[];
  destroy(ip: string): Promise<void>;
}

/** The machines of the fleet: one leader adds and takes away, as the profile says. */
export class Machines {
  readonly #supervisor: Supervisor;
  readonly #ctx: SupervisorContext;
  readonly #gate: ControlGate;
  readonly #leadership: Leadership;
  readonly #pending: PendingDecisions;
  readonly #provisioner: Provisioner | undefined;
  #working: Promise<void> | undefined;

  constructor(supervisor: Supervisor, gate: ControlGate, provisioner: Provisioner | undefined) {
    this.#supervisor = supervisor;
    this.#gate = gate;
    this.#ctx = supervisor.ctx;
    this.#provisioner = provisioner;
    const { kv, clock, processes, config } = this.#ctx;
    if (config.minMachines > config.maxMachines)
      throw new Error(
        `PLATFORM_CAPTAIN_MIN_MACHINES is ${config.minMachines} and PLATFORM_CAPTAIN_MAX_MACHINES ${config.maxMachines}: raise the latter.`,
      );
    this.#leadership = new Leadership(kv, processes.ip);
    this.#pending = new PendingDecisions(kv, () => clock.now());
  }

  async state(): Promise<Static<typeof Autoscaler>> {
    const { config } = this.#ctx;
    const memory = await this.#memory();
    const at = (ms: number | null) => (ms === null || ms === 0 ? null : new Date(ms).toISOString());
    return {
      profile: profileOf(config.provisionProfile),
      leader_ip: await this.#leadership.holder(),
      min: config.minMachines,
      max: config.maxMachines,
      machines: (await this.#supervisor.samples.order()).length,
      cooldown_until: memory.cooldown_until > this.#ctx.clock.now().getTime() ? at(memory.cooldown_until) : null,
      saturated_since: at(memory.saturated_since),
      pending: await this.#pending.list(),
    };
  }

  async decide(key: string, decision: 'approve' | 'reject', asker: Asker): Promise<{ key: string; decision: string }> {
    return this.#gate.pass({ route: 'decide', asker, target: key, details: { decision } }, {}, async () => {
      const pending = await this.#pending.take(key);
      if (!pending)
        throw this.#ctx.problem('pending_not_found', { detail: `Nothing waits under ${key}; it was decided, or its hour is over.` });
      if (decision === 'approve') await this.#pending.approve(pending);
      return { key, decision };
    });
  }

  /** At every tick: the leader looks at the fleet, and does one thing. */
  async tick(): Promise<void> {
    // Making a machine takes longer than the lock lasts: it is renewed meanwhile, so that nobody else begins one.
    if (!(await this.#mayLead()) || !(await this.#leadership.hold()) || this.#working) return;
    const approved = await this.#pending.nextApproved();
    if (approved)
      return this.#work(() =>
        approved.kind === 'provision'
          ? this.#provision(approved.reason)
          : this.#retire(approved.key.slice('deprovision:'.length), approved.reason),
      );
    const { clock, kv, config } = this.#ctx;
    const [machines, order, all] = await Promise.all([
      this.#supervisor.samples.machines(),
      this.#supervisor.samples.order(),
      this.#supervisor.rows(),
    ]);
    const rows = all.filter(row => !isForsaken(row, clock.now()));
    const edgeIp = await this.#supervisor.edgeIp();
    const admits = (ip: string, service: string) => {
      const entry = this.#supervisor.catalog.entry(service);
      return entry !== undefined && placementRefusal({ service: entry, ip, edgeIp, rows }) === undefined;
    };
    const before = await this.#memory();
    const sight = {
      now: clock.now().getTime(),
      machines,
      count: order.length,
      inMachine: this.#supervisor.growing.some(service => admits(this.#ctx.processes.ip, service)),
      admits,
    };
    const { memory, decision } = judgeFleet(before, sight, { ...SCALING, min: config.minMachines, max: config.maxMachines });
    if (JSON.stringify(memory) !== JSON.stringify(before)) await kv.call('SET', MEMORY, JSON.stringify(memory), 'EX', 86_400);
    await this.#carryOut(decision);
  }

  /** Who makes machines keeps what is known of them: a machine without a kit leads only where it is the first one. */
  async #mayLead(): Promise<boolean> {
    return this.#provisioner !== undefined || (await this.#supervisor.samples.order())[0] === this.#ctx.processes.ip;
  }

  async leave(): Promise<void> {
    await this.#leadership.leave();
  }

  /** Resolves when nothing is being made or taken away. */
  async settled(): Promise<void> {
    await this.#working;
  }

  async #carryOut(decision: ScalingDecision): Promise<void> {
    const { log, config } = this.#ctx;
    const profile = profileOf(config.provisionProfile);
    if (decision.do === 'spawn') return this.#spawn(decision.ip, decision.service);
    if (decision.do === 'full')
      return log.error(
        { alert: 'captain.scale.capacity', reason: decision.reason, max: config.maxMachines },
        'the fleet is saturated and as large as it may be',
      );
    if (decision.do === 'provision') {
      if (profile === 'never')
        return log.error({ alert: 'captain.provision.dry_run', reason: decision.reason }, 'a machine would be added; the profile is never');
      const unable = this.#provisioner ? this.#provisioner.unable() : 'PLATFORM_CAPTAIN_MACHINE_KIT names nothing that makes machines.';
      if (unable !== undefined)
        return log.error({ alert: 'captain.scale.capacity', reason: unable }, 'a machine is needed and cannot be made');
      if (profile === 'manual') return this.#pending.ask('provision', 'next', decision.reason);
      return this.#work(() => this.#provision(decision.reason));
    }
    if (decision.do === 'retire') {
      if (profile === 'never') return;
      if (profile === 'manual') return this.#pending.ask('deprovision', decision.ip, decision.reason);
      return this.#work(() => this.#retire(decision.ip, decision.reason));
    }
  }

  /** Has another machine start the service, by the channel that may do nothing else (SUP-105). */
  async #spawn(ip: string, service: string): Promise<void> {
    const { backends, log } = this.#ctx;
    const at = await this.#supervisorOf(ip);
    if (!at) return log.warn({ ip }, 'the supervisor of a machine is not in the registry');
    const response = await backends.fetch('captain', '/v1/captain/instances', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ service_types: [service] }),
      timeoutMs: SPAWN_TIMEOUT_MS,
      as: 'remote',
      at,
    });
    log.info({ ip, service_type: service, status: response.status }, 'another machine was asked to start a service');
    await response.body?.cancel();
  }

  async #provision(reason: string): Promise<void> {
    const { log, config } = this.#ctx;
    const order = await this.#supervisor.samples.order();
    if (!this.#provisioner || order.length >= config.maxMachines) return;
    const ip = await this.#provisioner.create(freeName(this.#provisioner.names()));
    log.info({ ip, reason, kit: this.#provisioner.kind }, 'a machine was added');
  }

  /** Its supervisor ends it in order, ten seconds at best; then it is taken away (SUP-056). */
  async #retire(ip: string, reason: string): Promise<void> {
    const { backends, log } = this.#ctx;
    const [base] = await this.#supervisor.samples.order();
    if (ip === base || !this.#provisioner) return;
    const at = await this.#supervisorOf(ip);
    if (at) {
      await backends
        .fetch('captain', '/v1/captain/shutdown', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ reason }),
          timeoutMs: LEAVE_TIMEOUT_MS,
          at,
        })
        .then(response => response.body?.cancel())
        .catch(error => log.warn({ ip, err: error }, 'a machine does not say that it leaves; it is taken away all the same'));
    }
    await this.#provisioner.destroy(ip);
    await this.#supervisor.samples.leave(ip);
    // One that could not end in order has left its rows behind.
    for (const row of await this.#supervisor.rows()) if (row.ip === ip) await this.#ctx.processes.instances.remove(row);
    log.info({ ip, reason }, 'a machine was taken away');
  }

  async #supervisorOf(ip: string): Promise<{ ip: string; port: number } | undefined> {
    const rows = await this.#ctx.processes.instances.rows(['captain']);
    return rows.find(row => row.ip === ip && row.status === 'Active');
  }

  #work(work: () => Promise<void>): void {
    this.#working = work()
      .catch(error => this.#ctx.log.error({ err: error, alert: 'captain.scale.capacity' }, 'a machine could not be made or taken away'))
      .finally(() => {
        this.#working = undefined;
      });
  }

  async #memory(): Promise<ScalingMemory> {
    const text = (await this.#ctx.kv.call('GET', MEMORY)) as string | null;
    return text === null ? NO_MEMORY : (JSON.parse(text) as ScalingMemory);
  }
}

/**
 * The first number that no machine has: one that was taken away leaves a gap, and a name that is in use would make over the machine that
 * has it.
 */
function freeName(taken: readonly string[]): string {
  let number = 2;
  while (taken.includes(`platform-${number}`)) number += 1;
  return `platform-${number}`;
}
