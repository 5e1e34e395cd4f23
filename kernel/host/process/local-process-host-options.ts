import type { KeyValue, Logger } from '@platform/sdk';
import type { Bootstrap } from '../boot/bootstrap.ts';
import type { Releases } from '../machine/releases.ts';
import type { HealthLook } from './health-look.ts';
import type { RunnableService } from './runnable-services.ts';

/** What the processes of this machine are started and watched with. */
export interface LocalProcessHostOptions {
  readonly ip: string;
  readonly dataDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly services: readonly RunnableService[];
  /** What a process of the service is told, made anew for every start: enrollment secrets live 120 s. Fails while a store is away. */
  readonly bootstrap: (service: RunnableService) => Promise<Bootstrap>;
  /** Of what every process is told. One that was told something else is not kept by the next host. */
  readonly told: string;
  readonly build: () => string;
  readonly releases: Releases;
  readonly health: HealthLook;
  readonly kv: KeyValue;
  readonly log: Logger;
  readonly leave: () => void;
  /** What the machine at an address must know to join. */
  readonly invite: (ip: string, services: readonly string[]) => Promise<object>;
  /** Reads the folder of a plugin from outside, behind walls. */
  readonly read: (directory: string) => Promise<RunnableService>;
  /** So long without a sign of life, and a process is ended; 10 s when absent. */
  readonly silentMs?: number;
}
