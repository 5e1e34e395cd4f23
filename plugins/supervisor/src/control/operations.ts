import type { InstanceRow } from '@platform/sdk';
import type { SupervisorContext } from '../context.ts';
import type { Instance } from '../fleet/instances/instance.ts';
import { isInTurn } from '../fleet/row-age.ts';
import type { Slot } from '../life/fleet-life.ts';
import type { Supervisor } from '../supervisor.ts';
import type { Asker, ControlGate } from './control-gate.ts';

/** A start that takes longer goes on after its answer. */
const BEGUN_MS = 8_000;

export type ActionName = 'restart' | 'stop' | 'drain' | 'upgrade' | 'abort-upgrade' | 'rollback';

interface Target {
  readonly slot: Slot;
  readonly instance: Instance;
}

/** What operators and other machines may have this supervisor do: every call passes the gate, and is recorded. */
export class Operations {
  readonly #supervisor: Supervisor;
  readonly #gate: ControlGate;
  readonly #ctx: SupervisorContext;

  constructor(supervisor: Supervisor, gate: ControlGate) {
    this.#supervisor = supervisor;
    this.#gate = gate;
    this.#ctx = supervisor.ctx;
  }

  /** An action on one instance (G-CAP-03). Answers at once; what follows is told by the streams. */
  async act(
    action: ActionName,
    key: string,
    asker: Asker,
    { force = false, version }: { force?: boolean; version?: string } = {},
  ): Promise<{ operation_id: string; instance_key: string; action: string }> {
    const row = await this.row(key);
    const within =
      row !== undefined && this.#supervisor.catalog.entry(row.service_type)?.within === true && row.ip === this.#ctx.processes.ip;
    let target: Target | undefined;
    let operation = this.#ctx.platform.newId();
    await this.#gate.pass(
      { route: action, asker, target: key, details: { service_type: row?.service_type, force, version } },
      {
        target: () => {
          if (!row) throw this.#ctx.problem('instance_not_found', { detail: `No instance answers at ${key}.` });
          if (within)
            throw this.#ctx.problem('self_target', {
              detail: `${row.service_type} lives in the process of the supervisor. Restart the platform to restart it.`,
            });
          target = this.#target(key);
          if (!target) throw this.#ctx.problem('elsewhere', { detail: `The instance lives on ${row.ip}; ask the supervisor there.` });
        },
        state: () => this.#judge(action, target as Target, { force, version }),
      },
      async () => {
        operation = (await this.#carryOut(action, target as Target, version)) ?? operation;
      },
    );
    return { operation_id: operation, instance_key: key, action };
  }

  /** The path of an operator's start: all are judged first, and one refusal starts nothing (G-CAP-06). */
  async start(
    services: readonly string[],
    route: 'start-services' | 'instances',
    asker: Asker,
  ): Promise<{ started: { service_type: string; instance_key: string }[] }> {
    const { ctx, catalog, fleet } = this.#supervisor;
    return this.#gate.pass(
      { route, asker, target: services.join(','), details: { service_types: services } },
      {
        target: () => {
          const inside = services.find(service => catalog.entry(service)?.within);
          if (inside) throw ctx.problem('self_target', { detail: `${inside} lives in the process of the supervisor.` });
        },
        state: async () => {
          const unknown = services.filter(service => !catalog.entry(service));
          if (unknown.length > 0) throw ctx.problem('unknown_service_type', { detail: `The catalog does not have ${unknown.join(', ')}.` });
          const refusals: { service_type: string; reason: string }[] = [];
          for (const service_type of services) {
            const reason = await this.#supervisor.refusal(service_type, route === 'instances' ? 'remote' : 'start');
            if (reason) refusals.push({ service_type, reason });
          }
          if (refusals[0])
            throw ctx.problem('placement_refused', {
              detail: `${refusals[0].service_type}: ${refusals[0].reason}.`,
              extra: { reason: refusals[0].reason, refusals },
            });
        },
      },
      async () => {
        const patience = AbortSignal.timeout(BEGUN_MS);
        const started = services.map(async service_type => {
          try {
            const instance = await fleet.begin(service_type);
            const instance_key = instance.key(ctx.processes.ip) as string;
            await fleet.begun(instance, patience);
            return { service_type, instance_key };
          } catch (cause) {
            const detail = `${service_type} has no port or no process, or the registry of instances takes no row. Its log says more.`;
            throw ctx.problem('start_failed', { detail, cause });
          }
        });
        return { started: await Promise.all(started) };
      },
    );
  }

  async shutdown(
    asker: Asker,
    { reason = 'asked for', drain_s = 30 }: { reason?: string; drain_s?: number },
  ): Promise<{ operation_id: string }> {
    return this.#gate.pass({ route: 'shutdown', asker, target: this.#ctx.processes.ip, details: { reason, drain_s } }, {}, async () => {
      // After the answer: the connection it goes over ends with us.
      setImmediate(() => this.#ctx.processes.leave());
      return { operation_id: this.#ctx.platform.newId() };
    });
  }

  async row(key: string): Promise<InstanceRow | undefined> {
    return (await this.#supervisor.rows()).find(({ ip, port }) => `${ip}:${port}` === key);
  }

  #target(key: string): Target | undefined {
    const { fleet, ctx } = this.#supervisor;
    const instance = [...fleet.instances.values()].find(each => each.key(ctx.processes.ip) === key);
    const slot = instance && fleet.slot(instance.slot);
    return slot && { slot, instance };
  }

  #judge(action: ActionName, { slot }: Target, { force, version }: { force: boolean; version: string | undefined }): void {
    const { ctx, fleet, upgrades } = this.#supervisor;
    const run = fleet.upgradeOfService(slot.service);
    const running = () =>
      ctx.problem('upgrade_in_progress', {
        detail: `An upgrade of ${slot.service} is in the phase ${run?.upgrade.phase}. Abort it, or wait for its end.`,
      });
    switch (action) {
      case 'abort-upgrade':
        if (!run) throw ctx.problem('no_upgrade', { detail: `No upgrade of ${slot.service} is running.` });
        return;
      case 'rollback':
        if (!run && !upgrades.before.has(slot.service))
          throw ctx.problem('no_upgrade', { detail: `${slot.service} was not upgraded since the supervisor began.` });
        return;
      default:
        if (run) throw running();
    }
    if (version !== undefined && !ctx.processes.releases().includes(version))
      throw ctx.problem('unknown_release', { detail: `Known releases: ${ctx.processes.releases().join(', ') || '(none)'}.` });
    const others = fleet.slotsOf(slot.service).filter(({ id, life }) => id !== slot.id && life.phase === 'running');
    if ((action === 'stop' || action === 'drain') && !force && slot.life.phase === 'running' && others.length === 0)
      throw ctx.problem('last_active_instance', {
        detail: action === 'stop' ? 'Send `"force": true` to stop it all the same.' : `Start another instance of ${slot.service} first.`,
      });
  }

  async #othersServe({ service }: Slot, { port }: Instance): Promise<boolean> {
    const { ip, instances } = this.#ctx.processes;
    const now = this.#ctx.clock.now();
    return (await instances.rows([service])).some(row => isInTurn(row, now) && !(row.ip === ip && row.port === port));
  }

  async #carryOut(action: ActionName, { slot, instance }: Target, version: string | undefined): Promise<string | undefined> {
    const { fleet, upgrades, ctx } = this.#supervisor;
    switch (action) {
      case 'drain':
        fleet.tell(slot.id, { type: 'drain' });
        return undefined;
      case 'restart':
      case 'stop':
        // Where somebody else serves meanwhile, nobody is refused for it.
        if (slot.life.phase === 'running' && (await this.#othersServe(slot, instance))) fleet.leave(slot.id, { type: action });
        else fleet.tell(slot.id, { type: action });
        return undefined;
      case 'upgrade':
        return this.#upgrade(slot, version ?? '');
      case 'abort-upgrade':
        fleet.tellUpgrade(slot.service, { type: 'abort', reason: 'an operator aborted it' });
        return upgrades.operationOf(slot.service);
      case 'rollback':
        if (!fleet.upgradeOfService(slot.service)) return this.#upgrade(slot, upgrades.before.get(slot.service) ?? '');
        fleet.tellUpgrade(slot.service, { type: 'rollback', reason: 'an operator took it back' });
        return upgrades.operationOf(slot.service);
      default:
        throw ctx.problem('unknown_action');
    }
  }

  async #upgrade(slot: Slot, release: string): Promise<string | undefined> {
    const { fleet, upgrades, ctx } = this.#supervisor;
    const begun = await fleet.upgrade(slot, release);
    if (begun === 'unknown_instance') throw ctx.problem('instance_not_found');
    if (typeof begun === 'string') throw ctx.problem(begun);
    return upgrades.operationOf(slot.service);
  }
}
