import { readdirSync, readFileSync, existsSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isProblem, type Operator, type PlatformCommand } from '@platform/sdk';
import { DisposalStack } from '../../base/disposal-stack.ts';
import { anchorsOf, readAuthority } from '../../identity/certificates/trust-anchors.ts';
import { runningValkeyUrl } from '../../storage/valkey/embedded-valkey.ts';
import { openLog } from '../../telemetry/log.ts';
import { isRunning } from '../machine/data-dir-lock.ts';
import type { HostOptions } from '../host-options.ts';
import { HostWorkload } from '../machine/host-workload.ts';
import { shareHostPackages } from './loader.ts';
import { hostOptions } from '../boot/options.ts';
import { controlSocketPath } from '../machine/control-socket.ts';

export interface FoundCommand {
  readonly name: string;
  readonly summary: string;
  readonly module: string;
}

const SOCKET_MS = 30_000;
const PLUGINS = fileURLToPath(new URL('../../../plugins/', import.meta.url));

/** Commands that platform plugins bring, as their package.json says; none of their code is loaded. */
export function pluginCommands(): FoundCommand[] {
  return readdirSync(PLUGINS).flatMap(folder => {
    const path = join(PLUGINS, folder, 'package.json');
    if (!existsSync(path)) return [];
    const { platform } = JSON.parse(readFileSync(path, 'utf8')) as {
      platform?: { commands?: Record<string, { module: string; summary: string }> };
    };
    return Object.entries(platform?.commands ?? {}).map(([name, { module, summary }]) => ({
      name,
      summary,
      module: join(PLUGINS, folder, module),
    }));
  });
}

/** Runs it against the platform that runs on the data directory; answers the exit code. */
export async function runPluginCommand({ module }: FoundCommand, args: readonly string[]): Promise<number> {
  shareHostPackages();
  const { default: command } = (await import(pathToFileURL(module).href)) as { default: PlatformCommand };
  // Who reads may have had enough: `platform services | head`.
  process.stdout.on('error', () => process.exit(0));
  const say = (text: string) => process.stdout.write(`${text}\n`);
  if (args.includes('--help')) {
    say(command.help?.(args.filter(each => each !== '--help')) ?? command.usage);
    return 0;
  }
  const options = hostOptions([], process.env, () => undefined);
  const { dataDir } = options;
  if (!command.offline && !isRunning(dataDir)) {
    process.stderr.write(`No platform runs on ${dataDir}. Start it, or name its folder in PLATFORM_DATA_DIR.\n`);
    return 1;
  }
  await using owned = new DisposalStack();
  // Opened by the first command that calls a service: who asks the supervisor over its socket needs no certificate.
  let host: Promise<HostWorkload> | undefined;
  const rewrites = process.stderr.isTTY;
  const operator: Operator = {
    call: async <T>(service: string, method: 'GET' | 'POST', path: string, input = {}) =>
      (await (await (host ??= openHost(options, owned))).call(service, method, path, input)) as T,
    control: <T>(method: 'GET' | 'POST', path: string, body?: unknown) => askSocket<T>(controlSocketPath(options), method, path, body),
    print: line => void say(rewrites ? `\x1b[2K\r${line}` : line),
    progress: text => void process.stderr.write(rewrites ? `\x1b[2K\r${text}` : `${text}\n`),
  };
  try {
    return await command.run(args, operator);
  } catch (error) {
    process.stderr.write(
      `${isProblem(error) ? `${error.code}: ${error.message}` : error instanceof Error ? error.message : String(error)}\n`,
    );
    return 1;
  }
}

async function openHost(
  { dataDir, domain, pqMode, keyValueUrl = runningValkeyUrl(dataDir), edgePort, production }: HostOptions,
  owned: DisposalStack,
): Promise<HostWorkload> {
  if (keyValueUrl === undefined) throw new Error(`The key-value store of ${dataDir} does not run.`);
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
  return owned.own(await HostWorkload.open({ bootstrap, authority, log }));
}

/** One request on the control socket. Throws with what a refusal says. */
function askSocket<T>(socketPath: string, method: string, path: string, body: unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const outgoing = request(
      {
        socketPath,
        method,
        path,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
        timeout: SOCKET_MS,
      },
      response => {
        let said = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (said += chunk));
        response.on('error', reject);
        response.on('end', () => {
          const answer = said === '' ? undefined : (JSON.parse(said) as { code?: string; detail?: string; title?: string });
          if ((response.statusCode ?? 500) < 300) resolve(answer as T);
          else reject(new Error(`${answer?.code ?? response.statusCode}: ${answer?.detail ?? answer?.title ?? ''}`));
        });
      },
    );
    outgoing.on('timeout', () => outgoing.destroy(new Error('the supervisor does not answer')));
    outgoing.on('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'ENOENT' || error.code === 'ECONNREFUSED'
          ? new Error(`no supervisor listens on ${socketPath}`)
          : error.code === 'EACCES'
            ? new Error(`only root and the owner of the platform may use ${socketPath}`)
            : error,
      ),
    );
    outgoing.end(text);
  });
}
