import { generateKeyPairSync } from 'node:crypto';
import { enableCompileCache } from 'node:module';

const USAGE = `platform <command>

  run        start everything; Ctrl-C drains and stops it
             --distribution NAME what catalog/distributions says: all-in-one, single-host, fleet
             --split             one process per service
             --join FILE         as another machine of the fleet that wrote the invitation
             --trust-verticals   run verticals in the host process (development)
             --prefer-kv KIND    wasm or path: which embedded key-value store
  check      check a plugin folder and print its findings: check DIR
  manifest   print the manifest of a plugin folder: manifest DIR
  config     print every setting: name, value, source
             --explain SERVICE   of one service only
  migrate    apply migrations and stop
             --print-roles       print what a managed Postgres needs, change nothing
  trust      say how to trust the root certificate

  --help     this text`;

/** Post-quantum signatures are what everything else stands on: without them the first certificate fails in obscure words. */
function requirePostQuantum(): void {
  try {
    generateKeyPairSync('ml-dsa-65' as never);
  } catch {
    process.stderr.write(
      `This Node (${process.version}) has no ML-DSA. Start with \`npm start\`, which brings Node 26, or use Node 24.7 or newer.\n`,
    );
    process.exit(78);
  }
}

enableCompileCache();
requirePostQuantum();
const [command = '--help', ...args] = process.argv.slice(2);
const { pluginCommands, runPluginCommand } = await import('./host/plugin/plugin-command.ts');
const brought = pluginCommands();
const usage = () =>
  USAGE.replace('\n\n  --help', `${brought.map(({ name, summary }) => `\n  ${name.padEnd(10)} ${summary}`).join('')}\n\n  --help`);
const plugin = brought.find(({ name }) => name === command);
if (plugin) process.exitCode = await runPluginCommand(plugin, args);
else if (args.includes('--help') || command === '--help' || command === 'help') {
  process.stdout.write(`${usage()}\n`);
} else {
  const { commands } = await import('./host/commands.ts');
  const run = commands[command];
  if (!run) {
    process.stderr.write(`Unknown command ${command}.\n\n${usage()}\n`);
    process.exitCode = 64;
  } else await run(args);
}
