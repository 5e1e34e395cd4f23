/** Names of what the processes of the fleet keep together in the key-value store, and of the channel that tells of it (G-CAP-01). */
export const FLEET_KEYS = {
  /** Channel: the instances of a service are others (SUP-075). */
  changed: 'captain:changed',
  /** Hash of the instances of a service, by address (SUP-072). */
  instances: (service: string) => `captain:svc:${service}`,
  /** Hash of the services that were given up on. */
  alerts: 'captain:alerts',
  /** The time between an instance and the next one, by instance. */
  upgrade: (instance: string) => `captain:upgrade:${instance}`,
  /** Who has taken a port of a machine. */
  port: (ip: string, port: number) => `captain:port:${ip}:${port}`,
  /** What a machine measured of itself last. */
  host: (ip: string) => `captain:host:${ip}`,
  /** Secrets by which certificates are asked for: of one workload at an address, or of a whole machine. */
  enrollment: (ip: string, workload?: string) => `captain:enrollment:${ip}${workload === undefined ? '' : `:${workload}`}`,
  enrollmentUses: (ip: string, workload: string) => `captain:enrollment:uses:${ip}:${workload}`,
  /** Machines: who leads, what they looked like before, in which order they came, and what waits for somebody. */
  machinesLead: 'captain:lock:machines',
  machinesMemory: 'captain:provision:memory',
  machinesOrder: 'captain:provision:order',
  machinesPending: 'captain:provision:pending',
  machinesApproved: 'captain:provision:approved',
} as const;
