import type { StreamItem } from '../../request/delivery.ts';

/** A service that the machine can run: one the platform ships, or one of a vertical. */
export interface Runnable {
  readonly service_type: string;
  readonly title: string;
  readonly vertical: string;
  readonly version: string;
  readonly start_priority: number;
  /** `pin:{ip}`, `pin:edge` or `anti:{service}`, as written down. */
  readonly placement: readonly string[];
  readonly singleton: boolean;
  readonly min_instances: number;
  /** Whether it was asked for at boot. */
  readonly wanted: boolean;
  /** Somebody took it out of the platform: nothing of it may run until it is brought back. */
  readonly withdrawn: boolean;
  /** It lives in the process of the caller: watched, never ended by itself. */
  readonly within: boolean;
}

/** Who a process is: a pid alone is given again, a pid with its start time is not. */
export interface ProcessId {
  readonly pid: number;
  readonly started: string;
}

/** One process of a service, as the machine remembers it when the process that started it is gone. */
export interface KnownProcess extends ProcessId {
  readonly service_type: string;
  readonly port: number;
  readonly release: string;
  /** The build of the code it runs. */
  readonly build: string;
  /** It was started under other addresses or names than those of today: it must not be kept. */
  readonly outdated: boolean;
}

/** A process that a service has started itself: a worker of it, behind walls of the service's making. */
export interface CompanionProcess {
  readonly pid: number;
  /** Since its start. */
  readonly cpu_ms: number;
  readonly rss_bytes: number;
}

/** What becomes known of a process that was started here. */
export type ProcessNews =
  | { readonly type: 'ready' }
  /** It says of itself that it cannot be. `absent`: a store was away, which is not its fault. */
  | { readonly type: 'failed'; readonly reason: string; readonly absent: boolean }
  | { readonly type: 'exited'; readonly reason: string };

export interface SpawnRequest {
  readonly service_type: string;
  readonly port: number;
  /** A named release; the code on disk when absent. */
  readonly release?: string;
  /** It takes the place of one that serves: it is no second one. */
  readonly replaces?: number;
}

/** One answer of an instance to a look at its health. `warming`: it refused the handshake, or nothing listens yet (SUP-034). */
export type HealthAnswer =
  | {
      readonly ok: true;
      readonly latency_ms: number;
      readonly active_connections: number;
      readonly api_calls: number;
      readonly errors: number;
    }
  | { readonly ok: false; readonly reason: string; readonly warming: boolean };

/** An instance as the shared registry holds it (G-CAP-01). */
export interface InstanceRow {
  readonly service_type: string;
  readonly ip: string;
  readonly port: number;
  readonly pid: number;
  readonly status: 'Starting' | 'Active' | 'Inactive' | 'Stopping' | 'Stopped' | 'Killed';
  readonly version: string;
  readonly metrics: { readonly cpu_pct: number; readonly mem_mb: number; readonly latency_ms: number; readonly active_connections: number };
  readonly restarts: number;
  readonly api_calls: number;
  readonly started_at: string;
  readonly last_health_at: string | null;
  readonly failures: number;
  readonly log_path: string;
}

/** The shared registry of instances (SUP-072): a process that changes it tells the routers on `captain:changed` (SUP-075). */
export interface InstanceRegistry {
  /** Every row of these services, whatever its status. */
  rows(services: readonly string[]): Promise<readonly InstanceRow[]>;
  /** Writes a row, or the given members into the one that is there. */
  write(row: Pick<InstanceRow, 'service_type' | 'ip' | 'port'> & Partial<InstanceRow>, tell: boolean): Promise<void>;
  remove(row: Pick<InstanceRow, 'service_type' | 'ip' | 'port'>): Promise<void>;
}

export interface MachineUsage {
  readonly cpu_pct: number;
  readonly mem_pct: number;
  readonly used_mb: number;
}

/** A request on the control socket of this machine. `uid` is the system's word on who sends it; none where it does not say. */
export interface ControlRequest {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly uid: number | undefined;
  /** Who owns this process. */
  readonly ownUid: number;
  readonly signal: AbortSignal;
}

/** Either a body or a stream of events. */
export interface ControlAnswer {
  readonly status: number;
  readonly body?: unknown;
  readonly items?: AsyncIterable<StreamItem>;
}

/** Processes of this machine, for the supervisor alone (capability `processes`). */
export interface ProcessHost {
  /** Address of this machine in the fleet. */
  readonly ip: string;
  /** The code on disk now. */
  readonly build: string;
  /** The same array until something of it changes. */
  runnable(): readonly Runnable[];
  /** Hears of services that came to be known later, because a vertical's folder was put there, and of those taken out or brought back. */
  onRunnable(listener: (service: Runnable) => void): Disposable;
  /**
   * Reads a plugin's folder and makes it one of those that can run here; its process inherits the variables named besides. Rejects with
   * what is wrong with it.
   */
  load(directory: string, variables?: readonly string[]): Promise<void>;
  /** Whether nobody listens on the port. */
  isFree(port: number): Promise<boolean>;
  /** Makes ready what a start needs, and answers how to make the process. Rejects with {@link StoreAbsent} while a store is away. */
  prepare(request: SpawnRequest): Promise<(news: (news: ProcessNews) => void) => ProcessId>;
  /** Processes that another supervisor of this machine started and that still live. */
  survivors(): readonly KnownProcess[];
  /** Sends a signal; SIGKILL reaches all of its group. False when it is gone. */
  signal(id: ProcessId, signal: 'SIGTERM' | 'SIGKILL'): boolean;
  isAlive(id: ProcessId): boolean;
  /** CPU time since its start, and resident memory. */
  usage(id: ProcessId): { readonly cpu_ms: number; readonly rss_bytes: number } | undefined;
  /** What the process of a service has started itself. It ends with it: the group it belongs to is ended when its leader is gone. */
  companions(id: Pick<ProcessId, 'pid'>): readonly CompanionProcess[];
  machine(telemetry: 'host' | 'cgroup'): MachineUsage;
  health(service: string, port: number, timeoutMs: number): Promise<HealthAnswer>;
  readonly instances: InstanceRegistry;
  logPath(service: string): string;
  /** The last lines that a service has written, oldest first. */
  logTail(service: string, lines: number): Promise<readonly string[]>;
  /** Keeps the uses of an enrollment of this machine open, for the services it may run (H-03). */
  publishEnrollment(services: readonly string[], secret: Uint8Array): Promise<void>;
  /** What the machine at an address must know to join the fleet, as the text of a file; a secret (H-03). */
  invite(ip: string, services: readonly string[]): Promise<string>;
  /** The program that a machine runs, told of the file of its invitation. */
  hostCommand(invitation: string): { readonly file: string; readonly args: readonly string[] };
  /** Names of the releases that can be started. */
  releases(): readonly string[];
  /** Opens the control socket of this machine, `captain.sock` in its folder for what runs (SUP-102). */
  controlSocket(handle: (request: ControlRequest) => Promise<ControlAnswer>): Promise<AsyncDisposable>;
  /** Who takes over the processes: `boot` runs once the caller's own process is up, `stop` before it goes down. */
  govern(rule: { boot(progress: (text: string) => void): Promise<void>; stop(): Promise<void> }): void;
  /** Ends the whole host in order, as Ctrl-C does. */
  leave(): void;
}

/** A start that failed because a store is away; nothing is to be held against the service. */
export class StoreAbsent extends Error {
  override readonly name = 'StoreAbsent';
}
