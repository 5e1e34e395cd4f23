import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Manifest } from '../../base/manifest.ts';
import { wallFlags } from '../process/walls.ts';
import { entryOf, type FoundPlugin } from './loader.ts';

const READER = fileURLToPath(new URL('./read-contract.ts', import.meta.url));
const READ_MS = 20_000;
const MAX_MANIFEST = 8_388_608;
const MEMORY_MB = 256;

/** Reads the contract of somebody else's plugin in a process of its own, inside the walls: importing it runs its code (F-04). */
export async function readBehindWalls(directory: string): Promise<FoundPlugin> {
  // What can be said without its code is said first, in words that name the file.
  const entry = entryOf(directory);
  const flags = ['--disable-warning=ExperimentalWarning', ...wallFlags({ directory, memoryMb: MEMORY_MB })];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, READER, directory], {
    timeout: READ_MS,
    killSignal: 'SIGKILL',
    maxBuffer: MAX_MANIFEST,
    env: {},
  }).catch((error: { killed?: boolean; stderr?: string }) => {
    throw new Error(
      error.killed
        ? `the contract in ${directory} cannot be read in ${READ_MS / 1_000} s`
        : `the contract in ${directory} cannot be read: ${lastLine(error.stderr ?? '')}`,
    );
  });
  const answer = parsed(stdout, directory);
  if (answer.fault !== undefined) throw new Error(answer.fault);
  return { directory, manifest: answer.manifest as Manifest, entry };
}

function parsed(text: string, directory: string): { manifest?: unknown; fault?: string } {
  try {
    // A contract that prints on its own prints before: what counts stands last.
    return JSON.parse(text.slice(text.lastIndexOf('\n{') + 1)) as { manifest?: unknown; fault?: string };
  } catch {
    throw new Error(`the contract in ${directory} ends its process before it is read`);
  }
}

const lastLine = (text: string): string =>
  text
    .trim()
    .split('\n')
    .find(line => /error/i.test(line)) ?? text.trim().slice(-200);
