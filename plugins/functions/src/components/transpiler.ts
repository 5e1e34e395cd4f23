import { spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ModuleFault } from '../metering/byte-reader.ts';
import { Turns } from '../isolation/turns.ts';
import { walls } from '../isolation/locked-process.ts';
import type { TranspileOrder, Transpiled } from '../isolation/wire.mts';

const PROGRAM = fileURLToPath(new URL('../isolation/transpile-process.mts', import.meta.url));
/** Where jco lies with what it loads. */
const packages = (): string =>
  `${fileURLToPath(import.meta.resolve('@bytecodealliance/jco')).replace(/(node_modules[\\/]@bytecodealliance)[\\/].*/, '$1')}/`;
const TIMEOUT_MS = 10_000;
const HEAP_MB = 256;
/** Pages of jco's own memory. */
const PAGES = 4_096;
/** Processes at once; more wait, and more than these are refused. */
const [AT_ONCE, WAITING] = [2, 32];

/** Has jco make code of components, each in a locked process of its own that ends afterwards: what it reads is somebody else's. */
export class Transpiler implements Disposable {
  readonly #ending = new AbortController();
  readonly #turns = new Turns(AT_ONCE, WAITING);

  /** Files by name. Throws {@link ModuleFault} for a component that jco does not take, or not in time, and {@link Crowded}. */
  async transpile(order: TranspileOrder): Promise<ReadonlyMap<string, Uint8Array>> {
    using _ = await this.#turns.take();
    const answer = await this.#ask(order);
    if ('fault' in answer) throw new ModuleFault('malformed', `The component is not valid: ${answer.fault}`);
    return new Map(answer.files);
  }

  #ask(order: TranspileOrder): Promise<Transpiled> {
    const child = spawn(process.execPath, [...walls([dirname(PROGRAM), packages()], { pages: PAGES, heapMb: HEAP_MB }), PROGRAM], {
      env: {},
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      serialization: 'advanced',
      killSignal: 'SIGKILL',
      timeout: TIMEOUT_MS,
      signal: this.#ending.signal,
    });
    return new Promise<Transpiled>((resolve, reject) => {
      child.once('message', resolve as (message: unknown) => void);
      child.once('error', reject);
      child.once('close', () =>
        reject(new ModuleFault('too_complex', `The component could not be made code of within ${TIMEOUT_MS / 1_000} seconds.`)),
      );
      child.send(order, error => error && reject(error));
    }).finally(() => child.kill());
  }

  [Symbol.dispose](): void {
    this.#ending.abort();
  }
}
