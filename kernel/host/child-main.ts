import { existsSync, readFileSync } from 'node:fs';
import { readAuthority } from '../identity/trust-anchors.ts';
import { isUnavailable } from '../storage/unavailable.ts';
import type { Bootstrap } from './bootstrap.ts';
import { isRunning } from './data-dir-lock.ts';
import { readSettings } from './settings.ts';
import { importPlugin, readPlugin } from './loader.ts';
import { PlatformProcess } from './platform-process.ts';
import { reasonOf } from './reason.ts';

/** One service as a child of the host: told everything over the inherited pipe, says `ready`, drains on SIGTERM. */
export async function runChild(args: readonly string[]): Promise<void> {
  const directory = args[args.indexOf('--plugin') + 1];
  if (!directory) throw new Error('--child needs --plugin DIR');
  const bootstrap = JSON.parse(readFileSync(3, 'utf8')) as Bootstrap;
  let started = false;
  const stop = new Promise<void>(resolve => {
    const end = () => {
      // What has not started has nothing to drain, and may never get so far.
      if (!started) process.exit(1);
      resolve();
    };
    process.once('SIGTERM', end);
    // The host is gone without a word. What serves goes on serving: the next host takes it over (SUP-037, issue of the fleet).
    process.once('disconnect', () => (started ? outlive(bootstrap, end) : end()));
  });
  // Ctrl-C reaches the whole terminal; only the host decides the order of stopping.
  process.on('SIGINT', () => undefined);
  try {
    const found = await readPlugin(directory);
    const plugin = await importPlugin(found);
    const { config, keys, faults } = readSettings(found.manifest, process.env, bootstrap.production);
    if (faults.length > 0) throw new Error(faults.map(({ variable, fault }) => `${variable} ${fault}`).join('; '));
    const authority = found.manifest.capabilities.includes('authority') ? await readAuthority(bootstrap.dataDir) : undefined;
    const running = await PlatformProcess.start({
      bootstrap,
      services: [{ plugin, manifest: found.manifest, config, keys }],
      ...(authority ? { authority } : {}),
      processName: found.manifest.id,
      pretty: !bootstrap.production,
    });
    started = true;
    if (process.connected) process.send?.('ready');
    await stop;
    await running.drain();
    await running[Symbol.asyncDispose]();
  } catch (error) {
    if (process.connected) process.send?.({ failed: reasonOf(error), absent: isUnavailable(error) });
    process.exitCode = 1;
  }
  if (process.connected) process.disconnect?.();
}

const LOOK_MS = 2_000;

/** Ends the process when no host has taken it over for too long, or when the platform's folder is gone. */
function outlive({ home, orphanMs = 0 }: Bootstrap, end: () => void): void {
  if (home === undefined) return end();
  let alone = performance.now();
  const look = setInterval(() => {
    if (!existsSync(home)) return end();
    const now = performance.now();
    if (isRunning(home)) alone = now;
    else if (orphanMs > 0 && now - alone > orphanMs) {
      clearInterval(look);
      end();
    }
  }, LOOK_MS);
  look.unref();
}
