import { isUnavailable, type ProcessHost, type ProcessId, type ProcessNews, reasonOf, StoreAbsent } from '@platform/sdk';
import type { Slot } from '../../life/fleet-life.ts';
import type { LifeEvent } from '../../life/instance-life.ts';
import type { PlacementRefusal } from '../placement-gate.ts';
import type { PortReservations } from '../port-reservations.ts';
import type { Instance } from './instance.ts';

interface Parts {
  readonly machine: ProcessHost;
  readonly ports: PortReservations;
  readonly now: () => Date;
  /** Why the service may not start here now, asked again before an attempt of the last resort (SUP-031). */
  readonly refusal: (service: string) => Promise<PlacementRefusal | undefined>;
  readonly slot: (id: string) => Slot | undefined;
  readonly tell: (slot: string, event: LifeEvent) => void;
  /** Its process is there. */
  readonly begun: (instance: Instance) => void;
}

/** In whose name a slot's port is taken. */
export const ownerOf = (slot: string): string => `${process.pid} ${slot}`;

/** Makes the processes of instances, attempt by attempt, and hears of their ends. */
export class ProcessMaking {
  readonly #parts: Parts;
  readonly #prepared = new Map<string, { attempt: number; make: (news: (news: ProcessNews) => void) => ProcessId }>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Its port, and what the process is made with. */
  async prepare(instance: Instance, attempt: number): Promise<void> {
    const { machine, ports, refusal } = this.#parts;
    const { slot, service } = instance;
    try {
      const life = this.#parts.slot(slot);
      const refused = life?.life.alert === undefined ? undefined : await refusal(service);
      if (refused) throw new Error(refused);
      instance.port = await ports.reserve(ownerOf(slot), instance.port);
      const release = life?.release ?? '';
      const make = await machine.prepare({ service_type: service, port: instance.port, ...(release === '' ? {} : { release }) });
      if (this.#parts.slot(slot)?.life.attempt === attempt) this.#prepared.set(slot, { attempt, make });
      this.#parts.tell(slot, { type: 'prepared', attempt });
    } catch (error) {
      this.#parts.tell(slot, {
        type: 'failed',
        attempt,
        reason: reasonOf(error),
        absent: error instanceof StoreAbsent || isUnavailable(error),
      });
    }
  }

  spawn(instance: Instance, attempt: number): void {
    const prepared = this.#prepared.get(instance.slot);
    this.#prepared.delete(instance.slot);
    const { slot } = instance;
    let process: ProcessId;
    try {
      if (prepared?.attempt !== attempt) throw new Error('was not prepared');
      process = prepared.make(news => {
        if (news.type === 'ready') this.#parts.tell(slot, { type: 'ready', attempt });
        else if (news.type === 'failed') this.#parts.tell(slot, { ...news, attempt });
        else this.ended(instance, attempt, news.reason);
      });
    } catch (error) {
      queueMicrotask(() => this.#parts.tell(slot, { type: 'exited', attempt, reason: reasonOf(error) }));
      return;
    }
    instance.build = this.#parts.slot(slot)?.release || this.#parts.machine.build;
    instance.begin(process, this.#parts.now().getTime());
    this.#parts.begun(instance);
  }

  ended(instance: Instance, attempt: number, reason: string): void {
    if (this.#parts.slot(instance.slot)?.life.attempt !== attempt) return;
    this.#parts.tell(instance.slot, { type: 'exited', attempt, reason });
    const phase = this.#parts.slot(instance.slot)?.life.phase;
    // The next process is made later: what is kept of this one is no longer one.
    if (phase === undefined || phase === 'waiting' || phase === 'given_up' || phase === 'lost') instance.process = undefined;
  }

  forget(slot: string): void {
    this.#prepared.delete(slot);
  }
}
