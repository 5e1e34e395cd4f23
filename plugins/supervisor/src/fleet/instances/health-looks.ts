import type { ProcessHost } from '@platform/sdk';
import type { Slot } from '../../life/fleet-life.ts';
import type { LifeEvent } from '../../life/instance-life.ts';
import type { Instance } from './instance.ts';

interface Parts {
  readonly machine: ProcessHost;
  readonly now: () => Date;
  readonly slot: (id: string) => Slot | undefined;
  readonly tell: (slot: string, event: LifeEvent) => void;
}
const LOOK_MS = 2_000;

/** Asks instances how they are, and tells their lives. */
export class HealthLooks {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Looks at everything that is due. */
  async due(instances: Iterable<Instance>, settleMs: number): Promise<void> {
    const now = this.#parts.now().getTime();
    const due = [...instances].filter(instance => {
      const phase = this.#parts.slot(instance.slot)?.life.phase;
      if (phase === 'starting') return instance.said || now - instance.startedAt >= settleMs;
      return phase === 'running' || phase === 'inactive';
    });
    await Promise.all(due.map(instance => this.look(instance)));
  }

  async look(instance: Instance): Promise<void> {
    const { machine, now } = this.#parts;
    const { slot, service, port } = instance;
    const attempt = this.#parts.slot(slot)?.life.attempt;
    if (instance.looking || port === undefined || attempt === undefined) return;
    instance.looking = true;
    const answer = await machine.health(service, port, LOOK_MS).finally(() => {
      instance.looking = false;
    });
    if (this.#parts.slot(slot)?.life.attempt !== attempt) return;
    instance.saw(answer, now());
    if (answer.ok) this.#parts.tell(slot, { type: 'healthy', attempt });
    else
      this.#parts.tell(slot, {
        type: 'unhealthy',
        attempt,
        reason: answer.reason,
        warming: answer.warming,
        age_ms: now().getTime() - instance.startedAt,
      });
  }
}
