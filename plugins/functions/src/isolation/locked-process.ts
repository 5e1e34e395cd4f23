import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FromGuest, ToGuest } from './wire.mts';

const MAX_SAID = 4_096;

export interface LockedProcessOptions {
  /** What it runs. */
  readonly code: string;
  /** Pages that a memory may have in this process, whatever a module says. */
  readonly pages: number;
  readonly heapMb: number;
  readonly heard: (message: FromGuest) => void;
  /** It ended by itself; `said` is the end of what it wrote about it. */
  readonly died: (said: string) => void;
}

/**
 * A child process that runs guests and can do nothing else.
 *
 * The service starts it, and not the supervisor through the kernel's `ProcessHost`, for three reasons. A guest that holds the thread past
 * its deadline costs its process, which is replaced within milliseconds; a supervisor may be away for fifteen minutes while services serve
 * on, and no execution may wait for it. What goes in and out of a guest takes one channel that both ends made together: handed on by a
 * third process, it would be a second protocol with framing of our own, or a copy of every byte. And the mark of who is to blame is an
 * open file without a name, which only a parent can share. So the walls stand here, and are those of a vertical or narrower: no file, no
 * network, no process, no worker, no addon, no code from strings, no variable of the environment, a bounded heap and bounded memories, and
 * the deadline of each execution in place of the heartbeat. The process is one of its service's group: the supervisor shows it with CPU
 * and memory on the page of the instance, and ends the group when the service is gone, however it went. In one process for all it ends
 * when its channel does.
 */
export class LockedProcess implements Disposable {
  readonly #child: ChildProcess;
  readonly #mark: number;
  readonly loaded = new Set<string>();
  #said = '';
  #ended = false;
  #disposed = false;

  constructor({ code, pages, heapMb, heard, died }: LockedProcessOptions) {
    this.#mark = unnamedFile();
    this.#child = spawn(process.execPath, [...walls([], { pages, heapMb }), '--title=platform-guest', '--input-type=module', '-'], {
      // One arena for all threads, so that little is held when nothing runs.
      env: { MALLOC_ARENA_MAX: '1' },
      cwd: '/',
      stdio: ['pipe', 'ignore', 'pipe', 'ipc', this.#mark],
      serialization: 'advanced',
    });
    this.#child.stdin?.on('error', () => undefined).end(code);
    this.#child.on('message', message => heard(message as FromGuest));
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#said = (this.#said + chunk.toString('utf8')).slice(-MAX_SAID);
    });
    const ended = () => {
      if (this.#ended) return;
      this.#ended = true;
      died(this.#said.trim());
    };
    this.#child.once('error', ended);
    this.#child.once('close', ended);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  send(message: ToGuest): void {
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  /** The execution whose guest the process entered last; 0 for none, and after the process was disposed of. */
  get marked(): number {
    if (this.#disposed) return 0;
    const buffer = new Float64Array(1);
    return readSync(this.#mark, new Uint8Array(buffer.buffer), 0, 8, 0) === 8 ? (buffer[0] as number) : 0;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  [Symbol.dispose](): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#ended = true;
    this.kill();
    closeSync(this.#mark);
  }
}

/** An open file that nobody else can name, and that is gone when the process that has it open ends. */
function unnamedFile(): number {
  const folder = mkdtempSync(join(tmpdir(), 'platform-guest-'));
  try {
    return openSync(join(folder, 'mark'), 'w+', 0o600);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What keeps a process from everything but its parent; it may read `folders`, where it has code that was not given to it. */
export const walls = (folders: readonly string[], { pages, heapMb }: { pages: number; heapMb: number }): string[] => [
  '--disable-warning=ExperimentalWarning',
  '--disable-warning=SecurityWarning',
  '--permission',
  ...folders.map(folder => `--allow-fs-read=${folder}`),
  `--max-old-space-size=${heapMb}`,
  `--wasm-max-mem-pages=${pages}`,
  '--disallow-code-generation-from-strings',
  '--no-addons',
  // Small while idle: there are several of them.
  '--max-semi-space-size=4',
  '--single-threaded-gc',
  '--v8-pool-size=1',
];
