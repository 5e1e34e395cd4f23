import { reasonOf } from '@platform/sdk';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { printRoles } from '../storage/schema/service-schema.ts';
import { checkManifest, formatFinding } from '@platform/checks';
import { ConfigError, EXIT_CONFIG, KERNEL_CONFIG, readConfig } from './boot/configuration.ts';
import { Host } from './host.ts';
import { explainKeys } from './keys/key-settings.ts';
import { importPlugin, readPlugin } from './plugin/loader.ts';
import { migrateAll } from './boot/migrate-all.ts';
import { hostOptions } from './boot/options.ts';
import { takeSteps, thisMachine, trustSteps } from './machine/trust-install.ts';

type Command = (args: readonly string[]) => Promise<void>;
const PLUGINS = fileURLToPath(new URL('../../plugins/', import.meta.url));
const out = (text: string) => process.stdout.write(`${text}\n`);

/** The commands of `platform`, each of which ends by itself or on a signal. */
export const commands: Readonly<Record<string, Command>> = {
  run: args => runHost(args),

  check: async ([directory = '.']) => {
    const found = await readPlugin(directory);
    const { manifest } = found;
    const outside = !resolve(directory).startsWith(PLUGINS);
    const known = new Map(await platformManifests());
    if (!outside) known.delete(manifest.id);
    const findings = checkManifest(manifest, known, { outside });
    for (const finding of findings) out(formatFinding(finding));
    // What a start would refuse of the code beside it: calls that the contract does not name, another contract than this one.
    const refused = await importPlugin(found).then(
      () => undefined,
      (error: Error) => error.message,
    );
    if (refused !== undefined) out(refused);
    if (refused !== undefined || findings.some(({ id }) => id.startsWith('E'))) process.exitCode = 1;
    else
      out(`${manifest.id}: ${Object.keys(manifest.routes).length} routes, ${Object.keys(manifest.events).length} events, nothing to mend`);
  },

  manifest: async ([directory = '.']) => {
    const { manifest } = await readPlugin(directory);
    out(JSON.stringify(manifest, null, 2));
  },

  config: async args => {
    const only = args.includes('--explain') ? args[args.indexOf('--explain') + 1] : undefined;
    const print = (service: string, schema: Parameters<typeof readConfig>[0]) => {
      for (const { variable, value, source, description } of readConfig(schema, process.env).explained)
        out(`${service.padEnd(8)} ${variable.padEnd(36)} ${String(value ?? '').padEnd(28)} ${source.padEnd(12)} ${description}`);
    };
    if (only === undefined) print('kernel', KERNEL_CONFIG);
    for (const [id, manifest] of await platformManifests()) {
      if (only !== undefined && only !== id) continue;
      print(id, manifest.config);
      for (const { variable, description } of explainKeys(manifest))
        out(
          `${id.padEnd(8)} ${variable.padEnd(36)} ${(process.env[variable] ? '[secret]' : '').padEnd(28)} ${(
            process.env[variable] ? 'environment' : 'unset'
          ).padEnd(12)} ${description}`,
        );
    }
  },

  migrate: async args => {
    const manifests = await platformManifests();
    if (args.includes('--print-roles')) return void out(printRoles([...manifests.keys()]));
    const services = await migrateAll(hostOptions(args, process.env, out));
    out(`Every schema is up to date: ${services.join(', ')}.`);
  },

  trust: async args => {
    const { dataDir } = hostOptions(args, process.env, () => undefined);
    const root = join(dataDir, 'ca', 'classical', 'root.crt');
    if (!existsSync(root)) return void out(`There is no ${root} yet: start the platform once.`);
    const steps = trustSteps(root, thisMachine());
    if (args.includes('--print') || steps.length === 0) {
      for (const { command } of steps) out(command.join(' '));
      return void out(howToTrust(root));
    }
    const outcomes = takeSteps(steps);
    for (const { store, done, why } of outcomes) out(done ? `  ${store}  trusts it` : `x ${store}  ${why}`);
    if (!outcomes.every(({ done }) => done)) out(howToTrust(root));
  },
};

async function platformManifests() {
  const root = new URL('../../', import.meta.url);
  const catalog = JSON.parse(readFileSync(new URL('catalog/platform.json', root), 'utf8')) as { services: { package: string }[] };
  const found = await Promise.all(catalog.services.map(({ package: name }) => readPlugin(new URL(`plugins/${name}`, root).pathname)));
  return new Map(found.map(({ manifest }) => [manifest.id, manifest]));
}

async function runHost(args: readonly string[]): Promise<void> {
  const stopped = stopSignal();
  const left = Promise.withResolvers<void>();
  const host = await startOrExit(args, left.resolve);
  if (host.firstStart) {
    out('');
    out('First start. Sign in once with this account; you will choose your own password:');
    out(`  e-mail    ${host.firstStart.email}`);
    out(`  password  ${host.firstStart.password}`);
    out('');
    for (const { text, url } of host.firstStart.steps) out(`${text}: ${url}`);
    out(howToTrust(host.ready.ca_root));
    out('');
  }
  out(`Console: ${host.ready.console}`);
  out(`ready ${JSON.stringify(host.ready)}`);
  await Promise.race([stopped, left.promise]);
  out('Stopping: finishing what is under way …');
  await host.stop().catch(error => {
    process.stderr.write(`Something did not stop in order: ${reasonOf(error)}\n`);
    process.exitCode = 1;
  });
  out('Stopped.');
  // Whatever a plugin left open, a host that was told to end does.
  setTimeout(() => process.exit(), LINGER_MS).unref();
}

async function startOrExit(args: readonly string[], leave?: () => void): Promise<Host> {
  const startedAt = performance.now();
  const progress = (text: string) => out(`${`${((performance.now() - startedAt) / 1_000).toFixed(1)} s`.padStart(7)}  ${text}`);
  try {
    return await Host.start(hostOptions(args, process.env, progress), leave);
  } catch (error) {
    const lines: string[] = [];
    for (let at: unknown = error; at instanceof Error && lines.length < 6; at = at.cause) lines.push(at.message);
    process.stderr.write(`The platform did not start.\n${lines.map(line => `  ${line}`).join('\n')}\n`);
    if (process.env['PLATFORM_LOG_LEVEL'] === 'debug') process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(error instanceof ConfigError ? EXIT_CONFIG : 1);
  }
}

/** One Ctrl-C may reach us several times: by the terminal, by npm, by the start script. */
const SAME_PRESS_MS = 2_000;
/** Verticals, then the platform's own services, then the databases: each has its own bound, and this is above their sum. */
const STOP_MS = 150_000;
const LINGER_MS = 5_000;

/** The first signal asks for an orderly stop, a later one ends at once. */
function stopSignal(): Promise<void> {
  // The reader of our output may be gone before we are; that is no reason to leave databases running.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  return new Promise(resolve => {
    let askedAt: number | undefined;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        if (askedAt !== undefined && performance.now() - askedAt > SAME_PRESS_MS) process.exit(130);
        askedAt ??= performance.now();
        setTimeout(() => {
          process.stderr.write(`Not everything stopped in ${STOP_MS / 1_000} s; ending now.\n`);
          process.exit(1);
        }, STOP_MS).unref();
        resolve();
      });
    }
  });
}

function howToTrust(root: string): string {
  return [
    'Browsers need to trust the root certificate of this platform (a file made on this machine):',
    `  ${root}`,
    '  Chromium on Linux   certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n platform -i FILE',
    '  macOS               security add-trusted-cert -r trustRoot FILE',
    '  Firefox             Settings → Privacy & Security → View Certificates → Import',
  ].join('\n');
}
