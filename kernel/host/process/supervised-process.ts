import type { ChildProcess } from 'node:child_process';
import type { Logger } from '@platform/sdk';
import { isUnavailable } from '../../storage/unavailable.ts';
import { reasonOf } from '../reason.ts';
import { type Failure, type Life, LIFE_SETTINGS, type LifeEffect, type LifeEvent, type LifeSettings, NEW_LIFE, step } from './process-life.ts';

export interface SupervisedOptions {
  readonly name: string;
  /**
   * Makes ready what a start needs, anew each time and before there is a process; a store that is away is told by its error. What it answers makes
   * the process: the leader of a group of its own, with an IPC channel on which it says `ready` or `{ failed, absent }`.
   */
  readonly prepare: () => Promise<() => ChildProcess>;
  /** Hears of every end that nobody asked for, and of what the alert is about (SUP-027, SUP-032). */
  readonly watch?: { down(pid: number | undefined): void; raise(alert: { reason: string; restarts: number }): void; clear(): void };
  readonly settings?: Partial<LifeSettings>;
  readonly log: Logger;
}

/** Carries out on this machine what {@link step} decides of one process. Life: new → started → stopped. */
export class SupervisedProcess implements AsyncDisposable {
  readonly #options: SupervisedOptions;
  readonly #settings: LifeSettings;
  readonly #first = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();
  #life: Life = NEW_LIFE;
  #child: ChildProcess | undefined;
  #lastPid: number | undefined;
  #prepared: (() => ChildProcess) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SupervisedOptions) {
    this.#options = options;
    this.#settings = { ...LIFE_SETTINGS, ...options.settings };
    this.#first.promise.catch(() => undefined);
  }

  /** The process that lives now. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get life(): Life {
    return this.#life;
  }

  /** Resolves when it is ready; rejects when the first attempt failed, and goes on with the next ones by itself. */
  start(): Promise<void> {
    this.#hear({ type: 'start' });
    return this.#first.promise;
  }

  /** Ends it, by force when it does not end; resolves in any case. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#hear({ type: 'stop' });
    await this.#ended.promise;
  }

  #hear(event: LifeEvent): void {
    const { life, effects } = step(this.#life, event, this.#settings);
    this.#life = life;
    for (const effect of effects) this.#carryOut(effect);
  }

  #carryOut(effect: LifeEffect): void {
    switch (effect.do) {
      case 'prepare':
        return void this.#prepare(effect.attempt);
      case 'spawn':
        return this.#spawn(effect.attempt);
      case 'kill':
        return this.#kill(effect.signal);
      case 'arm': {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#hear({ type: 'timer', attempt: effect.attempt }), effect.ms);
        return;
      }
      case 'disarm':
        return clearTimeout(this.#timer);
      case 'down':
        return this.#down(effect);
      case 'raise':
        this.#options.log.error(
          { alert: 'captain.service.failed', service_type: this.#options.name, restarts: effect.restarts, reason: effect.reason },
          'service process was given up; last-resort attempts go on',
        );
        return this.#options.watch?.raise(effect);
      case 'clear':
        this.#options.log.info({ service_type: this.#options.name }, 'service process is back; its alert is over');
        return this.#options.watch?.clear();
      case 'up':
        return this.#first.resolve();
      case 'ended':
        this.#first.reject(new Error(`${this.#options.name} was stopped`));
        return this.#ended.resolve();
    }
  }

  async #prepare(attempt: number): Promise<void> {
    try {
      const prepared = await this.#options.prepare();
      if (attempt === this.#life.attempt) this.#prepared = prepared;
      this.#hear({ type: 'prepared', attempt });
    } catch (error) {
      this.#hear({ type: 'failed', attempt, reason: reasonOf(error), absent: isUnavailable(error) });
    }
  }

  #spawn(attempt: number): void {
    const make = this.#prepared as () => ChildProcess;
    this.#prepared = undefined;
    let child: ChildProcess;
    try {
      child = make();
    } catch (error) {
      queueMicrotask(() => this.#hear({ type: 'exited', attempt, reason: reasonOf(error) }));
      return;
    }
    this.#child = child;
    this.#lastPid = child.pid;
    endWithHost(child);
    const gone = (reason: string) => {
      if (this.#child === child) this.#child = undefined;
      this.#hear({ type: 'exited', attempt, reason });
    };
    child.once('exit', (code, signal) => gone(`ended (${code ?? signal})`));
    // Without a pid there never was a process, and there is no exit to wait for.
    child.on('error', error => child.pid ?? gone(reasonOf(error)));
    child.on('message', message => {
      if (message === 'ready') this.#hear({ type: 'ready', attempt });
      else if (isFailure(message)) this.#hear({ type: 'failed', attempt, reason: String(message.failed), absent: message.absent === true });
    });
  }

  #kill(signal: NodeJS.Signals): void {
    const { pid } = this.#child ?? {};
    if (pid === undefined) return;
    try {
      // Asked to end, it brings its own children along; by force, the whole group goes.
      process.kill(signal === 'SIGKILL' ? -pid : pid, signal);
    } catch {
      // It ended between the look and the signal.
    }
  }

  #down({ reason, absent, again_ms }: Failure & { readonly again_ms: number | undefined }): void {
    const { name, log, watch } = this.#options;
    const fields = { service_type: name, reason, restarts: this.#life.restarts, again_ms };
    if (absent) log.warn(fields, 'service process waits for a store');
    else log.error(fields, 'service process is down');
    watch?.down(this.#lastPid);
    this.#first.reject(new Error(`${name} ${reason}`));
  }
}

const living = new Set<number>();

/** A host that ends in a hurry leaves no process behind that nobody can stop any more. */
function endWithHost(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  if (living.size === 0) process.once('exit', killLiving);
  living.add(pid);
  child.once('exit', () => {
    living.delete(pid);
    if (living.size === 0) process.off('exit', killLiving);
  });
}

function killLiving(): void {
  for (const pid of living) {
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // It was quicker.
    }
  }
}

const isFailure = (message: unknown): message is { failed: unknown; absent?: unknown } => typeof message === 'object' && message !== null && 'failed' in message;
