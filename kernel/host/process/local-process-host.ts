import type { ChildProcess } from 'node:child_process';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type CompanionProcess,
  type ControlAnswer,
  type ControlRequest,
  type HealthAnswer,
  type InstanceRegistry,
  type KnownProcess,
  type MachineUsage,
  type ProcessHost,
  type ProcessId,
  type ProcessNews,
  type Runnable,
  type SpawnRequest,
  StoreAbsent,
  isUnavailable,
  reasonOf,
} from '@platform/sdk';
import { instanceRegistry } from '../../routing/directory.ts';
import { linesAtEnd } from '../../storage/log-file.ts';
import { isAlive } from '../../storage/process-record.ts';
import type { Manifest } from '../../base/manifest.ts';
import type { Bootstrap } from '../boot/bootstrap.ts';
import { publishEnrollment } from '../machine/enrollment/enrollment.ts';
import { directoryStore } from '../service/key-value-port.ts';
import { FIRST_SOCKET, launchChild } from './child/child-launch.ts';
import { ControlSocket, controlSocketPath } from '../machine/control-socket.ts';
import type { LocalProcessHostOptions } from './local-process-host-options.ts';
import { ListenerSockets } from './sockets/listener-sockets.ts';
import { ProcessNotes } from './process-notes.ts';
import { companionsOf, MachineLoad, processUsage } from '../machine/process-usage.ts';
import { type RunnableService, RunnableServices } from './runnable-services.ts';

interface Living extends ProcessId {
  readonly child: ChildProcess;
}

const MAIN = fileURLToPath(new URL('../../child.ts', import.meta.url));
const HOST_MAIN = fileURLToPath(new URL('../../main.ts', import.meta.url));
const STOP_MS = 10_000;
const SILENT_MS = 10_000;

/** Processes of this machine as children of this one, each the leader of a group of its own, and those that an earlier host left behind. */
export class LocalProcessHost implements ProcessHost, AsyncDisposable {
  readonly ip: string;
  readonly instances: InstanceRegistry;
  readonly #options: LocalProcessHostOptions;
  readonly #services: RunnableServices;
  readonly #living = new Map<number, Living>();
  readonly #notes: ProcessNotes;
  readonly #load = new MachineLoad();
  readonly #sockets: ListenerSockets;
  #rule: Parameters<ProcessHost['govern']>[0] | undefined;
  #leaving = false;
  readonly #atExit = () => this.#killAtExit();

  constructor(options: LocalProcessHostOptions) {
    this.#options = options;
    this.ip = options.ip;
    this.instances = instanceRegistry(directoryStore(options.kv));
    this.#sockets = new ListenerSockets(options.log);
    this.#notes = new ProcessNotes(options.dataDir);
    this.#services = new RunnableServices(options.services);
    process.once('exit', this.#atExit);
  }

  get build(): string {
    return this.#options.build();
  }

  runnable(): readonly Runnable[] {
    return this.#services.list();
  }

  onRunnable(listener: (service: Runnable) => void): Disposable {
    return this.#services.onChange(listener);
  }

  /** A service that came to be known after the start. */
  add(service: RunnableService): void {
    this.#services.add(service);
  }

  /** Services that somebody took out of the platform: nothing of them runs until they are brought back. */
  withdraw(services: ReadonlySet<string>): void {
    this.#services.withdraw(services);
  }

  /** Contracts of a vertical's services that this machine has. */
  manifestsOf(vertical: string): readonly Manifest[] {
    return this.#services.manifestsOf(vertical);
  }

  async load(directory: string, variables: readonly string[] = []): Promise<void> {
    this.add({ ...(await this.#options.read(directory)), variables });
  }

  govern(rule: Parameters<ProcessHost['govern']>[0]): void {
    this.#rule = rule;
  }

  async boot(progress: (text: string) => void): Promise<void> {
    if (!this.#rule)
      throw new Error('nobody watches over the processes of this machine: the distribution has no service with the capability `processes`');
    await this.#rule.boot(progress);
  }

  async stop(): Promise<void> {
    this.#leaving = true;
    await this.#rule?.stop();
  }

  leave(): void {
    this.#options.leave();
  }

  async isFree(port: number): Promise<boolean> {
    const server = createServer();
    try {
      server.listen(port, this.ip);
      await once(server, 'listening');
      return true;
    } catch {
      return false;
    } finally {
      server.close();
    }
  }

  async prepare(request: SpawnRequest): Promise<(news: (news: ProcessNews) => void) => ProcessId> {
    const service = this.#services.get(request.service_type);
    if (!service || service.within) throw new Error(`${request.service_type} has no process of its own here`);
    const { main, directory } = this.#codeOf(service, request.release);
    try {
      await this.#inherit(service);
      const bootstrap = await this.#options.bootstrap(service);
      const told = { ...bootstrap, ip: this.ip, port: request.port, supervised: true, build: request.release ?? bootstrap.build };
      return news => this.#spawn(service, request, { main, directory, told }, news);
    } catch (error) {
      if (isUnavailable(error)) throw new StoreAbsent(reasonOf(error), { cause: error });
      throw error;
    }
  }

  survivors(): readonly KnownProcess[] {
    return this.#notes.living().map(({ told, ...note }) => ({ ...note, outdated: told !== this.#options.told }));
  }

  signal(id: ProcessId, signal: 'SIGTERM' | 'SIGKILL'): boolean {
    if (id.pid === process.pid || !isAlive(id)) return false;
    try {
      // Asked to end, it brings its own children along; by force, the whole group goes.
      process.kill(signal === 'SIGKILL' ? -id.pid : id.pid, signal);
      return true;
    } catch {
      return false;
    }
  }

  isAlive(id: ProcessId): boolean {
    const alive = isAlive(id);
    if (!alive) this.#notes.drop(id);
    return alive;
  }

  usage(id: ProcessId): { cpu_ms: number; rss_bytes: number } | undefined {
    return processUsage(id);
  }

  companions({ pid }: Pick<ProcessId, 'pid'>): readonly CompanionProcess[] {
    // This process has started the others, and the databases.
    return pid === process.pid ? [] : companionsOf(pid);
  }

  machine(telemetry: 'host' | 'cgroup'): MachineUsage {
    return this.#load.look(telemetry);
  }

  health(service: string, port: number, timeoutMs: number): Promise<HealthAnswer> {
    return this.#options.health.look(service, { ip: this.ip, port }, timeoutMs);
  }

  logPath(service: string): string {
    return join(this.#dataDirOf(service), 'logs', `${service}.log`);
  }

  async logTail(service: string, lines: number): Promise<readonly string[]> {
    const [log, output] = await Promise.all([
      linesAtEnd(this.logPath(service)),
      linesAtEnd(join(this.#options.dataDir, 'logs', `${service}.out`)),
    ]);
    // What it said last on its error output tells why it ended; it stands behind what it logged.
    const last = output.slice(-Math.ceil(lines / 4));
    return [...log.slice(-(lines - last.length)), ...last];
  }

  async publishEnrollment(services: readonly string[], secret: Uint8Array): Promise<void> {
    await publishEnrollment(this.#options.kv, { ip: this.ip, services, secret });
  }

  async invite(ip: string, services: readonly string[]): Promise<string> {
    return JSON.stringify(await this.#options.invite(ip, services));
  }

  hostCommand(invitation: string): { file: string; args: readonly string[] } {
    return { file: process.execPath, args: [...process.execArgv, HOST_MAIN, 'run', '--join', invitation] };
  }

  controlSocket(handle: (request: ControlRequest) => Promise<ControlAnswer>): Promise<AsyncDisposable> {
    return ControlSocket.open(controlSocketPath(this.#options), handle, this.#options.log);
  }

  releases(): readonly string[] {
    return this.#options.releases.names();
  }

  /** Ends what is still there in order: its supervisor is gone already, or never came. */
  async [Symbol.asyncDispose](): Promise<void> {
    process.off('exit', this.#atExit);
    const living = [...this.#living.values()];
    await Promise.all(
      living.map(async ({ child, ...id }) => {
        const gone = once(child, 'exit');
        if (!this.signal(id, 'SIGTERM')) return;
        const late = setTimeout(() => this.signal(id, 'SIGKILL'), STOP_MS);
        await gone;
        clearTimeout(late);
      }),
    );
    this.#sockets[Symbol.dispose]();
  }

  #codeOf(service: RunnableService, release: string | undefined): { main: string; directory: string } {
    if (release === undefined) return { main: MAIN, directory: service.directory };
    return this.#options.releases.codeOf(release, service.directory);
  }

  #spawn(
    service: RunnableService,
    request: SpawnRequest,
    { main, directory, told }: { main: string; directory: string; told: Bootstrap },
    news: (news: ProcessNews) => void,
  ): ProcessId {
    const { manifest, variables } = service;
    const { dataDir, environment, log, silentMs = SILENT_MS, told: host } = this.#options;
    const sockets = Object.entries(this.#sockets.of(manifest, environment));
    return launchChild(
      { manifest, directory, main, told, dataDir, home: this.#dataDirOf(manifest.id), environment, variables, sockets, silentMs, log },
      {
        news,
        begun: (id, child) => {
          this.#living.set(id.pid, { ...id, child });
          this.#notes.keep({
            ...id,
            service_type: manifest.id,
            port: request.port,
            release: request.release ?? '',
            build: told.build,
            told: host,
          });
        },
        ended: id => {
          this.#living.delete(id.pid);
          this.#notes.drop(id);
        },
      },
    );
  }

  /** What a kept instance listens on is what the next one must listen on. */
  async #inherit({ manifest }: RunnableService): Promise<void> {
    const kept = this.#notes.living().find(note => note.service_type === manifest.id && !this.#living.has(note.pid));
    if (kept && Object.values(manifest.routes).some(({ door }) => door === 'listener'))
      await this.#sockets.inherit(manifest, kept.pid, FIRST_SOCKET);
  }

  #dataDirOf(service: string): string {
    const { dataDir } = this.#options;
    const { manifest } = this.#services.get(service) ?? {};
    return manifest === undefined || manifest.vertical === 'platform' ? dataDir : join(dataDir, 'verticals', service);
  }

  /** Somebody who asked twice to end wants all of it gone. A host that dies of itself leaves its processes to the next one (SUP-037). */
  #killAtExit(): void {
    if (this.#leaving) for (const id of this.#living.values()) this.signal(id, 'SIGKILL');
  }
}
