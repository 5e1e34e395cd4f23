import { readdirSync, readFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isProblem, type Operator, type PlatformCommand } from '@platform/sdk';
import { DisposalStack } from '../base/disposal-stack.ts';
import { anchorsOf, readAuthority } from '../identity/trust-anchors.ts';
import { runningValkeyUrl } from '../storage/embedded-valkey.ts';
import { openLog } from '../telemetry/log.ts';
import { isRunning } from './data-dir-lock.ts';
import { HostWorkload } from './host-workload.ts';
import { shareHostPackages } from './loader.ts';
import { hostOptions } from './options.ts';

export interface FoundCommand {
  readonly name: string;
  readonly summary: string;
  readonly module: string;
}

const PLUGINS = fileURLToPath(new URL('../../plugins/', import.meta.url));

/** Commands that platform plugins bring, as their package.json says; none of their code is loaded. */
export function pluginCommands(): FoundCommand[] {
  return readdirSync(PLUGINS).flatMap(folder => {
    const path = join(PLUGINS, folder, 'package.json');
    if (!existsSync(path)) return [];
    const { platform } = JSON.parse(readFileSync(path, 'utf8')) as { platform?: { commands?: Record<string, { module: string; summary: string }> } };
    return Object.entries(platform?.commands ?? {}).map(([name, { module, summary }]) => ({ name, summary, module: join(PLUGINS, folder, module) }));
  });
}

/** Runs it against the platform that runs on the data directory; answers the exit code. */
export async function runPluginCommand({ module }: FoundCommand, args: readonly string[]): Promise<number> {
  shareHostPackages();
  const { default: command } = (await import(pathToFileURL(module).href)) as { default: PlatformCommand };
  const say = (text: string) => process.stdout.write(`${text}\n`);
  if (args.includes('--help')) {
    say(command.usage);
    return 0;
  }
  const { dataDir, domain, pqMode, keyValueUrl = runningValkeyUrl(dataDir), edgePort, production } = hostOptions([], process.env, () => undefined);
  if (keyValueUrl === undefined || !isRunning(dataDir)) {
    process.stderr.write(`No platform runs on ${dataDir}. Start it, or name its folder in PLATFORM_DATA_DIR.\n`);
    return 1;
  }
  await using owned = new DisposalStack();
  const authority = await readAuthority(dataDir);
  const log = openLog({ level: 'error', directory: join(dataDir, 'logs'), build: '', pretty: false, process: 'command' });
  const bootstrap = {
    domain,
    production,
    dataDir,
    build: '',
    logLevel: 'error',
    edgePort,
    pqMode,
    anchors: anchorsOf(authority),
    keyValueUrl,
    manifests: [],
    enrollment: {},
    database: { host: '', port: 0, database: '' },
  };
  const host = owned.own(await HostWorkload.open({ bootstrap, authority, log }));
  const rewrites = process.stderr.isTTY;
  const operator: Operator = {
    call: async <T>(service: string, method: 'GET' | 'POST', path: string, input = {}) => (await host.call(service, method, path, input)) as T,
    print: line => void say(rewrites ? `\x1b[2K\r${line}` : line),
    progress: text => void process.stderr.write(rewrites ? `\x1b[2K\r${text}` : `${text}\n`),
  };
  try {
    return await command.run(args, operator);
  } catch (error) {
    process.stderr.write(`${isProblem(error) ? `${error.code}: ${error.message}` : error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}
