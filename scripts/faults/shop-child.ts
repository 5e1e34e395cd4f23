import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Sent } from './history/history.ts';

export interface ShopOrder {
  readonly database: { readonly host: string; readonly port: number; readonly database: string };
  readonly ssl: { readonly ca: string; readonly cert: string; readonly key: string; readonly servername: string };
  /** The proxies of the buses. */
  readonly ports: readonly number[];
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string; readonly servername: string };
  readonly headers: Readonly<Record<string, string>>;
}
/** An event of an outbox always has a key: that of its row. */
export type Keyed = Sent & { readonly key: string };
export type ShopAsked = { readonly commit: Keyed & { readonly env: string } } | { readonly sweep: true };
export interface ShopSaid {
  readonly ready?: true;
  readonly committed?: { readonly producer: string; readonly n: number };
}

const CHILD = fileURLToPath(new URL('./shop-process.ts', import.meta.url));

/** A service with an outbox and the kernel's relay, in a process that can die. */
export class ShopChild {
  readonly #order: ShopOrder;
  readonly #waiting = new Map<string, () => void>();
  #child: ChildProcess | undefined;
  #killed = false;

  constructor(order: ShopOrder) {
    this.#order = order;
  }

  async start(): Promise<void> {
    const child = fork(CHILD, [], { execArgv: ['--disable-warning=ExperimentalWarning'], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    this.#child = child;
    this.#killed = false;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    child.on('message', ({ ready, committed }: ShopSaid) => {
      if (ready) resolve();
      if (committed) this.#waiting.get(`${committed.producer}/${committed.n}`)?.();
    });
    child.once('exit', code => {
      reject(new Error(`the shop process ended with ${code}`));
      // One that ends by itself is started again, as the fleet does.
      if (!this.#killed) void this.start().catch(() => undefined);
    });
    child.send(this.#order);
    await promise;
  }

  /** Resolves with true when the event is committed; with false after `ms`, when nobody knows. */
  async commit(env: string, sent: Keyed, ms: number): Promise<boolean> {
    const name = `${sent.producer}/${sent.n}`;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(resolve, ms, false);
    this.#waiting.set(name, () => resolve(true));
    try {
      if (this.#child?.connected) this.#child.send({ commit: { ...sent, env } } satisfies ShopAsked, () => {});
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(name);
    }
  }

  pause(paused: boolean): void {
    this.#child?.kill(paused ? 'SIGSTOP' : 'SIGCONT');
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    this.#killed = true;
    const ended = new Promise<void>(resolve => child.once('exit', () => resolve()));
    child.kill('SIGKILL');
    await ended;
  }
}
