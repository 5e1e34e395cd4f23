import type { Logger } from '@platform/sdk';
import type { Clock } from '../../base/clock.ts';
import type { ConsumerBus, StreamEntry } from './consumer-bus.ts';

export interface ConsumerOptions {
  readonly bus: ConsumerBus;
  readonly log: Logger;
  readonly service: string;
  readonly name: string;
  readonly family: string;
  /** `*`, or the one event to handle; the bus keeps everything else of the family to itself. */
  readonly event: string;
  /** How many lanes are handled at once; one after another when absent. */
  readonly concurrency?: number;
  /** Shared by all processes of the service, or this process's own and gone with it. */
  readonly delivery: 'fleet' | 'process';
  readonly instance: string;
  readonly clock: Clock;
  readonly handle: (entry: StreamEntry) => Promise<void>;
  /** Pause before the bus is asked again when it could not be reached; longer with every failure when absent. */
  readonly reconnectMs?: number;
  /** Told when events may have gone by unheard: where it starts with the latest, once it hears; and when the bus has cut some (H-22). */
  readonly missed?: () => void;
  /** Writes the mark of a handler that opened no transaction; false when it was there already. */
  readonly mark?: (consumer: string, key: string) => Promise<boolean>;
}
