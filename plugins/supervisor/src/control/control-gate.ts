import { type Caller, SYSTEM } from '@platform/sdk';
import type { SupervisorContext } from '../context.ts';

const MOST_NAME = 200;

/** Who asks, and by which way it came: over the network with a verified identity, or over the socket of this machine with its user. */
export type Asker =
  | { readonly channel: 'network'; readonly caller: Caller; readonly ip: string }
  | { readonly channel: 'socket'; readonly uid: number };

/** Who sends a request: the caller that the kernel verified, or the user that the control socket saw. */
export const askerOf = ({
  caller,
  ip,
  socketUid,
}: {
  readonly caller: Caller | undefined;
  readonly ip: string;
  readonly socketUid?: number;
}): Asker => (socketUid === undefined ? { channel: 'network', caller: caller as Caller, ip } : { channel: 'socket', uid: socketUid });

export interface ControlQuestion {
  readonly route: string;
  readonly asker: Asker;
  /** What it is about: an instance, services, the machine. */
  readonly target: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/**
 * Steps 4, 6, 7 and 8 of the gate (G-CAP-09), in their order; 1, 2, 3 and 5 are the kernel's for requests of the network, and the socket's
 * own for those of this machine. An error inside a step denies.
 */
export class ControlGate {
  readonly #ctx: SupervisorContext;

  constructor(ctx: SupervisorContext) {
    this.#ctx = ctx;
  }

  /** Runs `work` when every step lets it pass, and records what became of it. */
  async pass<T>(
    question: ControlQuestion,
    { target, state }: { readonly target?: () => void; readonly state?: () => void | Promise<void> },
    work: () => Promise<T>,
  ): Promise<T> {
    try {
      await this.#channel(question);
      target?.();
      await state?.();
    } catch (error) {
      await this.#record(question, 'denied');
      throw error;
    }
    const answer = await work().catch(async (error: unknown) => {
      await this.#record(question, 'error');
      throw error;
    });
    await this.#record(question, 'success');
    return answer;
  }

  /** 4: what may start instances may do nothing else, whatever else its token says (SUP-105). */
  async #channel({ route, asker }: ControlQuestion): Promise<void> {
    if (asker.channel === 'socket' || route === 'instances' || asker.caller.kind !== 'machine') return;
    if (asker.caller.subject === 'captain-remote')
      throw this.#ctx.problem('channel_restricted', { detail: 'This workload starts instances by POST /v1/captain/instances.' });
  }

  /**
   * 8: the record. An action that cannot be recorded yet is recorded when the database is back: nothing is kept from an operator in need.
   */
  async #record({ route, asker, target, details }: ControlQuestion, outcome: 'success' | 'error' | 'denied'): Promise<void> {
    const { db, log, platform } = this.#ctx;
    const caller = asker.channel === 'network' ? asker.caller : undefined;
    const who = asker.channel === 'network' ? asker.caller.subject : `uid ${asker.uid}`;
    log.info({ action: `captain:${route}`, target, outcome, who, channel: asker.channel }, 'an operator acts on the fleet');
    await db
      .tx(tx =>
        tx.audit({
          envId: SYSTEM.envId,
          action: `captain:${route}`,
          ...(caller ? { caller } : {}),
          // The registry takes no longer name (G-SYS-13); all services that were asked for stand in the details.
          resource: { type: 'fleet', id: target.slice(0, MOST_NAME) },
          outcome,
          details: {
            ...details,
            channel: asker.channel,
            ...(asker.channel === 'socket' ? { uid: asker.uid } : {}),
            ip: asker.channel === 'network' ? asker.ip : 'local',
            correlation: platform.newId(),
          },
        }),
      )
      .catch(error =>
        log.warn(
          { action: `captain:${route}`, target, outcome, err: error },
          'an action stands in the log and not in the audit trail: the database is away',
        ),
      );
  }
}
