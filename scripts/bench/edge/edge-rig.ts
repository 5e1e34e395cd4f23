import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DisposalStack } from '@platform/kernel/base/disposal-stack';
import type { BackendOrder, BackendPorts } from './backend-process.ts';
import type { Load } from './edge-load.ts';
import type { IngressReady } from './ingress-process.ts';
import { haproxy, nginx, type Peer } from './peers.ts';
import { cpuUs } from './process-cpu.ts';

export const HOST = 'echo.ops.sys.localhost';

/** The ingress, its peers, one backend and one client, each a process of its own on this machine. */
export class EdgeRig implements AsyncDisposable {
  readonly peers: readonly Peer[];
  readonly ingress: { readonly pid: number; readonly port: number };
  readonly #owned: DisposalStack;
  readonly #client: ChildProcess;

  private constructor(owned: DisposalStack, parts: Pick<EdgeRig, 'peers' | 'ingress'> & { client: ChildProcess }) {
    this.#owned = owned;
    this.peers = parts.peers;
    this.ingress = parts.ingress;
    this.#client = parts.client;
  }

  static async start(): Promise<EdgeRig> {
    const owned = new DisposalStack();
    try {
      const home = mkdtempSync(join(tmpdir(), 'platform-bench-'));
      owned.defer(() => rmSync(home, { recursive: true, force: true }));
      const ingress = child(owned, './ingress-process.ts');
      const { port, certificates } = (await heard(ingress)) as IngressReady;
      const serving = child(owned, './backend-process.ts');
      serving.send({ certificates } satisfies BackendOrder);
      const backend = (await heard(serving)) as BackendPorts;
      ingress.send(backend);
      await heard(ingress);
      const { cert, key } = certificates.at(-1) as IngressReady['certificates'][number];
      const peers: Peer[] = [];
      for (const start of [nginx, haproxy]) {
        const peer = await start({ home, cert, key, backend });
        if (!peer) continue;
        owned.defer(() => ended(peer.process));
        peers.push(peer);
      }
      const client = child(owned, './edge-load.ts');
      return new EdgeRig(owned, { peers, ingress: { pid: ingress.pid as number, port }, client });
    } catch (error) {
      await owned[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** CPU that one process takes for a load, in µs. */
  async cpuOf(pid: number, family: boolean, load: Load): Promise<number> {
    const before = cpuUs(pid, family);
    this.#client.send(load);
    const said = await heard(this.#client);
    if (said !== 'done') throw new Error(String(said));
    return cpuUs(pid, family) - before;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned[Symbol.asyncDispose]();
  }
}

function child(owned: DisposalStack, file: string): ChildProcess {
  const process = fork(fileURLToPath(new URL(file, import.meta.url)), [], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  owned.defer(async () => {
    const over = process.exitCode === null ? once(process, 'exit') : undefined;
    if (process.connected) process.disconnect();
    await over;
  });
  return process;
}

async function heard(from: ChildProcess): Promise<unknown> {
  const over = new AbortController();
  try {
    const [message] = await Promise.race([
      once(from, 'message', { signal: over.signal }),
      once(from, 'exit', { signal: over.signal }).then(([code]) => Promise.reject(new Error(`a process of the bench ended with ${code}`))),
    ]);
    return message;
  } finally {
    over.abort();
  }
}

async function ended(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null) return;
  const over = once(process, 'exit');
  process.kill('SIGTERM');
  await over;
}
