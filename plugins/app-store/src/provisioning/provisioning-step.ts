import type { InstanceRow } from '../instances/instance-row.ts';

/** The members of an instance that a step brings. */
export type Brought = Partial<
  Pick<InstanceRow, 'app_instance_id' | 'client_id' | 'client_id_issued_at' | 'client_secret' | 'statistics_property_id'>
>;

/**
 * One step of an install. Both ways may be gone any number of times: a step that was begun and of which nobody knows the outcome is done
 * again, or taken back, without asking what became of it.
 */
export interface ProvisioningStep {
  readonly name: string;
  do(instance: InstanceRow, signal: AbortSignal): Promise<Brought | undefined>;
  undo(instance: InstanceRow, signal: AbortSignal): Promise<void>;
}
