import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger, Placement } from '@platform/sdk';
import { backoff } from '../base/backoff.ts';
import type { Bootstrap } from './bootstrap.ts';
import { processFlags } from './process-flags.ts';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));
const STOP_MS = 35_000;
const READY_MS = 60_000;
const MAX_RESTARTS = 5;
const STABLE_MS = 30_000;
/** What a child inherits of the environment: nothing that names a key of the certificate authority (doc3, supervisor 12). */
const INHERITED = ['PATH', 'HOME', 'TZ', 'LANG', 'NODE_ENV', 'NODE_COMPILE_CACHE', 'MALLOC_ARENA_MAX', 'NODE_EXTRA_CA_CERTS'];

export interface ChildOptions {
  readonly name: string;
  readonly pluginDirectory: string;
  readonly placement: Placement;
  /** Made anew for every start: enrollment secrets live 120 s. */
  readonly bootstrap: () => Promise<Bootstrap>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Settings whose names start so are the plugin's own. */
  readonly settings: readonly string[];
  readonly log: Logger;
}

/**
 * One service in a process of its own, in its own process group: started with its secrets over a pipe, restarted when it dies (bounded),
 * stopped with SIGTERM and, late, SIGKILL. Life: new → starting → ready → (died → starting)* → stopped.
 */
export class ServiceProcess implements AsyncDisposable {
  readonly #options: ChildOptions;
  #child: ChildProcess | undefined;
  #stopping = false;
  #restarts = 0;

  constructor(options: ChildOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async start(): Promise<void> {
    const { name, pluginDirectory, placement, environment, settings } = this.#options;
    const env = Object.fromEntries(Object.entries(environment).filter(([variable]) => INHERITED.includes(variable) || settings.some(prefix => variable.startsWith(prefix))));
    const child = spawn(process.execPath, [...processFlags(placement), MAIN, 'run', '--child', '--only', name, '--plugin', pluginDirectory], {
      env,
      stdio: ['ignore', 'inherit', 'inherit', 'pipe', 'ipc'],
      detached: true,
    });
    this.#child = child;
    const pipe = child.stdio[3] as NodeJS.WritableStream;
    pipe.on('error', () => undefined);
    pipe.end(JSON.stringify(await this.#options.bootstrap()));
    await this.#ready(child);
    const startedAt = Date.now();
    child.once('exit', (code, signal) => void this.#died(code ?? signal, startedAt));
  }

  #ready(child: ChildProcess): Promise<void> {
    const { name } = this.#options;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${name} did not get ready in ${READY_MS / 1_000} s`)), READY_MS);
      const settle = (act: () => void) => {
        clearTimeout(timer);
        child.removeAllListeners('exit');
        act();
      };
      child.once('exit', (code, signal) => settle(() => reject(new Error(`${name} ended while starting (${code ?? signal})`))));
      child.on('message', message => {
        if (message === 'ready') settle(resolve);
        else if (typeof message === 'object' && message !== null && 'failed' in message) settle(() => reject(new Error(`${name} failed: ${String(message.failed)}`)));
      });
    });
  }

  async #died(reason: unknown, startedAt: number): Promise<void> {
    const { name, log } = this.#options;
    if (this.#stopping) return;
    if (Date.now() - startedAt > STABLE_MS) this.#restarts = 0;
    log.error({ alert: 'captain.service.failed', service_type: name, reason: String(reason), restarts: this.#restarts }, 'service process died');
    while (!this.#stopping && this.#restarts < MAX_RESTARTS) {
      await delay(backoff(this.#restarts++, { baseMs: 500, capMs: 16_000 }), undefined, { ref: false });
      if (this.#stopping) return;
      try {
        return await this.start();
      } catch (error) {
        log.error({ service_type: name, err: error }, 'service process did not come back');
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true;
    const child = this.#child;
    if (!child?.pid || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>(resolve => child.once('exit', () => resolve()));
    child.kill('SIGTERM');
    const late = new AbortController();
    await Promise.race([gone.finally(() => late.abort()), delay(STOP_MS, undefined, { signal: late.signal }).catch(() => undefined)]);
    if (child.exitCode === null && child.signalCode === null) {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It ended between the look and the kill.
      }
    }
  }
}
