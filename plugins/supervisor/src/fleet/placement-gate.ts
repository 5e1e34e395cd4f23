import type { InstanceRow, Runnable } from '@platform/sdk';

export type PlacementRefusal = 'pin_mismatch' | 'anti_violation' | 'singleton_violation';

/** Where a service wants to be, and what is where: the rows of the whole fleet. */
export interface PlacementQuestion {
  readonly service: Pick<Runnable, 'service_type' | 'placement' | 'singleton'>;
  readonly ip: string;
  /** What `pin:edge` stands for (SUP-014). */
  readonly edgeIp: string;
  readonly rows: readonly Pick<InstanceRow, 'service_type' | 'ip' | 'status'>[];
}

const LIVING: ReadonlySet<InstanceRow['status']> = new Set(['Starting', 'Active', 'Inactive', 'Stopping']);

/**
 * The placement gate: one function for boot, start-services, the scaler and remote spawn (SUP-017). Answers why the service may not start
 * on this machine; nothing where it may. A key that cannot be read constrains nothing (SUP-021): it was refused when it was written (H-09).
 */
export function placementRefusal({ service, ip, edgeIp, rows }: PlacementQuestion): PlacementRefusal | undefined {
  for (const key of service.placement) {
    const [, kind, value = ''] = /^(pin|anti):(.+)$/.exec(key) ?? [];
    if (kind === 'pin' && PIN.test(value) && (value === 'edge' ? edgeIp : value) !== ip) return 'pin_mismatch';
    if (kind === 'anti' && rows.some(row => row.service_type === value && row.ip === ip && LIVING.has(row.status))) return 'anti_violation';
  }
  if (service.singleton && rows.some(row => row.service_type === service.service_type && row.status === 'Active'))
    return 'singleton_violation';
  return undefined;
}

const PIN = /^(edge|\d{1,3}(\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:.]+)$/i;

/** Whether a placement key means something (H-09). */
export const isPlacementKey = (key: string): boolean =>
  /^anti:[a-z][a-z0-9]{0,30}$/.test(key) || (key.startsWith('pin:') && PIN.test(key.slice(4)));
