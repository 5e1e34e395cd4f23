import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { join } from 'node:path';
import { type Logger, type ProcessId, type ProcessNews, reasonOf } from '@platform/sdk';
import type { Manifest } from '../../../base/manifest.ts';
import { openLog } from '../../../storage/log-file.ts';
import { recordOf } from '../../../storage/process-record.ts';
import type { Bootstrap } from '../../boot/bootstrap.ts';
import { processFlags } from '../../boot/process-flags.ts';
import { hostRecord } from '../../machine/data-dir-lock.ts';
import { childEnvironment } from './child-environment.ts';
import { Heartbeat } from '../heartbeat.ts';
import { giveHome, type VerticalAccount, verticalAccount } from '../vertical-account.ts';
import { wallFlags } from '../walls.ts';

/** Of a vertical, which writes nowhere else. */
const FOLDERS = ['keys', 'logs', 'files'];
/** Behind input, output, errors, what it is told, and the channel. */
export const FIRST_SOCKET = 5;

export interface LaunchOrder {
  readonly manifest: Manifest;
  /** Its code, and the program that runs it. */
  readonly directory: string;
  readonly main: string;
  readonly told: Bootstrap;
  readonly dataDir: string;
  /** Of a vertical: all that is its own. */
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Variables that the operator lets it inherit besides what its contract names. */
  readonly variables?: readonly string[] | undefined;
  /** Listening sockets by the door that they are for. */
  readonly sockets: readonly (readonly [string, number])[];
  /** So long without a sign of life, and it is said to have failed. */
  readonly silentMs: number;
  readonly log: Logger;
}

/** Hears what becomes of a process: that there is one, what it says, that there is none. */
export interface LaunchListener {
  begun(id: ProcessId, child: ChildProcess): void;
  news(news: ProcessNews): void;
  ended(id: ProcessId): void;
}

/** Starts a process for one service, the leader of a group of its own, and tells it everything over a pipe. */
export function launchChild(order: LaunchOrder, listener: LaunchListener): ProcessId {
  const { manifest, directory, main, told, dataDir, environment, variables, sockets, silentMs } = order;
  const output = openLog(join(dataDir, 'logs'), `${manifest.id}.out`);
  const { flags, account } = manifest.vertical === 'platform' ? { flags: [] } : wallsOf(order);
  const child = spawn(
    process.execPath,
    [...processFlags(manifest.placement), ...flags, main, '--only', manifest.id, '--plugin', directory],
    {
      env: childEnvironment(manifest, environment, { dataDir, allowed: variables }),
      // Files, not pipes: it must be able to go on writing when this process is gone.
      stdio: ['ignore', output.fd, output.fd, 'pipe', 'ipc', ...sockets.map(([, fd]) => fd)],
      detached: true,
      ...account,
    },
  );
  closeSync(output.fd);
  const { pid } = child;
  if (pid === undefined) {
    child.on('error', error => listener.news({ type: 'exited', reason: reasonOf(error) }));
    return { pid: 0, started: 'never' };
  }
  const id = recordOf(pid);
  listener.begun(id, child);
  const pipe = child.stdio[3] as NodeJS.WritableStream;
  pipe.on('error', () => undefined);
  pipe.end(JSON.stringify({ ...told, listeners: Object.fromEntries(sockets.map(([door], at) => [door, FIRST_SOCKET + at])) }));
  const watch = new Heartbeat(silentMs, () =>
    listener.news({ type: 'failed', reason: `gave no sign of life for ${silentMs / 1_000} s`, absent: false }),
  );
  child.once('exit', (code, signal) => {
    watch.end();
    endGroup(pid);
    listener.ended(id);
    listener.news({ type: 'exited', reason: `ended (${code ?? signal})` });
  });
  child.on('error', () => undefined);
  child.on('message', message => {
    if (message === 'beat') watch.beat();
    else if (message === 'ready') listener.news({ type: 'ready' });
    else if (isFailure(message)) listener.news({ type: 'failed', reason: String(message.failed), absent: message.absent === true });
  });
  return id;
}

/** Nothing that a service has started outlives it, whatever it was doing: it was all of one group, whose name is given to nobody else. */
function endGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // Nobody is left of it.
  }
}

/** Its own folder is all that somebody else's code may write, and it holds nothing of the platform's. */
function wallsOf({ manifest, directory, main, dataDir, home, log }: LaunchOrder): { flags: string[]; account?: VerticalAccount } {
  const account = verticalAccount(manifest.id, [process.execPath, main, dataDir, join(directory, 'package.json')]);
  if (!account && process.getuid?.() === 0)
    log.warn(
      { service_type: manifest.id, directory },
      "a vertical runs as the platform's user: others cannot enter its folder, the platform's code or the data folder",
    );
  giveHome(home, FOLDERS, account);
  const write = FOLDERS.map(name => join(home, name));
  return {
    flags: wallFlags({ directory, read: [hostRecord(dataDir)], write, memoryMb: manifest.placement.memory_mb }),
    ...(account ? { account } : {}),
  };
}

const isFailure = (message: unknown): message is { failed: unknown; absent?: unknown } =>
  typeof message === 'object' && message !== null && 'failed' in message;
