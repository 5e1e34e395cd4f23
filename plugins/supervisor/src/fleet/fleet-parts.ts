import type { KeyValue, Logger, ProcessHost } from '@platform/sdk';
import type { FleetSettings, Slot, UpgradeRun } from '../life/fleet-life.ts';
import type { AlertBook } from './alert-book.ts';
import type { Instance } from './instances/instance.ts';
import type { PlacementRefusal } from './placement-gate.ts';
import type { PortReservations } from './port-reservations.ts';

/** What the fleet of a machine works with, and whom it tells. */
export interface FleetParts {
  readonly machine: ProcessHost;
  readonly kv: KeyValue;
  readonly ports: PortReservations;
  readonly alerts: AlertBook;
  readonly settings: FleetSettings;
  readonly log: Logger;
  readonly now: () => Date;
  readonly newId: () => string;
  readonly versionOf: (service: string) => string;
  /** Why the service may not start here now, asked again before an attempt of the last resort (SUP-031). */
  readonly refusal: (service: string) => Promise<PlacementRefusal | undefined>;
  /** Hears how an upgrade goes on. */
  readonly tell: (progress: { run: UpgradeRun; service: string; phase: string; percent: number; message: string }) => void;
  /** Something about an instance changed. */
  readonly changed: (slot: Slot | undefined, instance: Instance) => void;
}
