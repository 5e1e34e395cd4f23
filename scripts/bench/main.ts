import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { keyValueServer } from '@platform/kernel/storage/valkey/embedded-valkey';
import { auditRows } from './suites/audit.ts';
import { busRows } from './suites/bus.ts';
import { callRows } from './suites/kernel/calls.ts';
import { doorRows } from './suites/kernel/doors.ts';
import { edgeRows } from './suites/edge.ts';
import { ingressRows } from './suites/ingress.ts';
import { functionRows } from './suites/functions.ts';
import { fleetRows, fleetUpgradeRows } from './suites/fleet.ts';
import { identityRows } from './suites/identity.ts';
import { notificationRows } from './suites/notification.ts';
import { platformRows } from './suites/kernel/platform.ts';
import { policyRows } from './suites/kernel/policy.ts';
import { registryRows } from './suites/registry.ts';
import { resolveRows } from './suites/kernel/resolve.ts';
import { routerRows } from './suites/kernel/router.ts';
import { line, type Row, type Suite, table } from './row.ts';
import { signInPageRows } from './suites/faces/signin.ts';
import { wasmSpecRows } from './suites/wasm-spec.ts';

const SUITES: Readonly<Record<string, Suite>> = {
  policy: policyRows,
  calls: callRows,
  router: routerRows,
  resolve: resolveRows,
  audit: auditRows,
  identity: identityRows,
  registry: registryRows,
  bus: busRows,
  platform: platformRows,
  doors: doorRows,
  signin: signInPageRows,
  edge: edgeRows,
};
/** What the requirements speak of takes long, and is asked for by its own name. */
const LONG: Readonly<Record<string, { suite: Suite; about: string }>> = {
  'audit-long': { suite: auditRows, about: 'ten million events, about fifteen minutes' },
  'identity-long': { suite: identityRows, about: 'a thousand environments, about five minutes' },
  'registry-long': { suite: registryRows, about: 'a hundred thousand creates and ten kills, about fifteen minutes' },
  notification: {
    suite: notificationRows,
    about:
      'twenty thousand messages and a kill, a few minutes; PLATFORM_BENCH_MESSAGES=N sends others, PLATFORM_BENCH_HANG_S=N lets a provider hang for longer',
  },
  fleet: {
    suite: fleetRows,
    about: 'the supervisor at rest, three upgrades each of three services under load, and deaths, about five minutes',
  },
  'fleet-upgrades': {
    suite: fleetUpgradeRows,
    about: 'fifty upgrades each of registry, gateway and ingress under load, about forty minutes',
  },
  ingress: { suite: ingressRows, about: 'the half of edge that is the ingress, with slowhttptest where it is installed, under a minute' },
  functions: { suite: functionRows, about: 'beside @extism/extism, about two minutes' },
  'wasm-spec': { suite: wasmSpecRows, about: 'the WebAssembly specification’s suite and 1,500 generated modules, about two minutes' },
  'bus-long': { suite: busRows, about: 'beside NATS, RabbitMQ, pg-boss and graphile-worker, about ten minutes' },
};
const HELP = `npm run bench [NAME]

  Without a name every short one runs, in less than five minutes; rows are printed as they come.
  ${Object.keys(SUITES).join(', ')}

  Long ones run by their name only:
${Object.entries(LONG)
  .map(([name, { about }]) => `  ${name.padEnd(15)} ${about}`)
  .join('\n')}

  What is compared runs side by side in one run. A table, and .data/bench.json with the same rows, come at the end.
`;
const [name] = process.argv.slice(2).filter(argument => argument !== '--');
const long = name === undefined ? undefined : LONG[name];

if (name === '--help') process.stdout.write(HELP);
else if (name !== undefined && !(name in SUITES) && !long) {
  process.stderr.write(`No bench ${name}.\n\n${HELP}`);
  process.exitCode = 64;
} else {
  const began = performance.now();
  const rows: Row[] = [];
  const chosen: [string, Suite][] = long
    ? [[name as string, long.suite]]
    : Object.entries(SUITES).filter(([suite]) => name === undefined || name === suite);
  for (const [suite, run] of chosen) {
    process.stderr.write(`▸ ${suite} …\n`);
    const from = performance.now();
    for await (const row of run(long ? 'long' : 'short')) {
      rows.push(row);
      process.stderr.write(`${line(row)}\n`);
    }
    process.stderr.write(`  ${suite} took ${Math.round((performance.now() - from) / 1_000)} s\n`);
  }
  const store = keyValueServer();
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}, ${store ? `${basename(store.file)} ${store.version}` : 'the packaged key-value store'}`;
  const directory = fileURLToPath(new URL('../../.data/', import.meta.url));
  mkdirSync(directory, { recursive: true, mode: 0o711 });
  writeFileSync(join(directory, 'bench.json'), JSON.stringify({ at: new Date().toISOString(), machine, rows }, null, 2));
  process.stdout.write(`${machine}, ${Math.round((performance.now() - began) / 1_000)} s\n\n${table(rows)}\n`);
}
