import { isUnavailable, reasonOf } from '@platform/sdk';
import { closeSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readAuthority } from '../../../identity/certificates/trust-anchors.ts';
import type { Bootstrap } from '../../boot/bootstrap.ts';
import { hostBeats } from '../../machine/data-dir-lock.ts';
import { importPlugin, readPlugin } from '../../plugin/loader.ts';
import { PlatformProcess } from '../../platform-process.ts';
import type { LoadedService } from '../../platform-process-options.ts';
import { takeChannel } from './child-channel.ts';
import { readSettings } from '../../boot/settings.ts';

const BEAT_MS = 1_000;
const LOOK_MS = 2_000;

/** One service as a child of the host: told everything over the inherited pipe, says `ready`, drains on SIGTERM. */
export async function runChild(args: readonly string[]): Promise<void> {
  const [directory, only] = ['--plugin', '--only'].map(name => args[args.indexOf(name) + 1]);
  if (!directory || !only) throw new Error('a child needs --only NAME --plugin DIR');
  const bootstrap = JSON.parse(readFileSync(3, 'utf8')) as Bootstrap;
  closeSync(3);
  const walled = process.permission !== undefined;
  const channel = takeChannel({ walled });
  let started = false;
  const stop = new Promise<void>(resolve => {
    const end = () => {
      // What has not started has nothing to drain, and may never get so far.
      if (!started) process.exit(1);
      resolve();
    };
    process.once('SIGTERM', end);
    // The host is gone without a word. What serves goes on serving: the next host takes it over.
    process.once('disconnect', () => (started ? outlive(bootstrap, end) : end()));
  });
  // Ctrl-C reaches the whole terminal; only the host decides the order of stopping.
  process.on('SIGINT', () => undefined);
  try {
    const service = walled ? walledService(directory, only, bootstrap) : await openService(directory, bootstrap);
    const authority = service.manifest.capabilities.includes('authority') ? await readAuthority(bootstrap.dataDir) : undefined;
    const running = await PlatformProcess.start({
      bootstrap,
      services: [service],
      ...(authority ? { authority } : {}),
      processName: service.manifest.id,
      pretty: !bootstrap.production,
      identified: () => walled && forgetKeys(bootstrap.dataDir),
    });
    started = true;
    channel.say('ready');
    // A process that turns in circles gives no sign of life, and is ended for it.
    const beat = setInterval(() => channel.say('beat'), BEAT_MS);
    beat.unref();
    await stop;
    clearInterval(beat);
    await running.drain();
    await running[Symbol.asyncDispose]();
  } catch (error) {
    channel.say({ failed: reasonOf(error), absent: isUnavailable(error) });
    process.exitCode = 1;
  }
  channel.close();
}

/** A service of the platform: its code is ours, and is read as it lies there now. */
async function openService(directory: string, bootstrap: Bootstrap): Promise<LoadedService> {
  const found = await readPlugin(directory);
  return { plugin: () => importPlugin(found), manifest: found.manifest, ...settingsOf(found.manifest, bootstrap) };
}

/**
 * Somebody else's: none of its code is loaded, its contract neither, before this process has its keys in memory and has given up reading
 * them.
 */
function walledService(directory: string, only: string, bootstrap: Bootstrap): LoadedService {
  const manifest = bootstrap.manifests.find(({ id }) => id === only);
  if (!manifest) throw new Error(`nobody said what ${only} is`);
  const plugin = async () => {
    const found = await readPlugin(directory);
    if (JSON.stringify(found.manifest) !== JSON.stringify(manifest))
      throw new Error(`E060 ${only}: its folder holds another contract than the one that was checked`);
    return importPlugin(found);
  };
  return { plugin, manifest, ...settingsOf(manifest, bootstrap) };
}

function settingsOf(manifest: LoadedService['manifest'], { production }: Bootstrap): Pick<LoadedService, 'config' | 'keys'> {
  const { config, keys, faults } = readSettings(manifest, process.env, production);
  if (faults.length > 0) throw new Error(faults.map(({ variable, fault }) => `${variable} ${fault}`).join('; '));
  return { config, keys };
}

/** From here on no code of this process can read or write the files of its keys. */
function forgetKeys(dataDir: string): void {
  const { drop } = process.permission as unknown as { drop(scope: string, path: string): void };
  for (const scope of ['fs.read', 'fs.write']) drop(scope, join(dataDir, 'keys'));
}

/** Ends the process when no host has taken it over for too long, or when the platform's folder is gone. */
function outlive({ home, orphanMs = 0 }: Bootstrap, end: () => void): void {
  if (home === undefined) return end();
  let alone = performance.now();
  const look = setInterval(() => {
    const beats = hostBeats(home);
    const now = performance.now();
    if (beats) alone = now;
    if (beats !== undefined && (beats || orphanMs === 0 || now - alone <= orphanMs)) return;
    clearInterval(look);
    end();
  }, LOOK_MS);
  look.unref();
}
