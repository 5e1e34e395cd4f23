import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { keyValueServer } from '@platform/kernel/storage/embedded-valkey';
import { auditRows } from './audit.ts';
import { busRows } from './bus.ts';
import { callRows } from './calls.ts';
import { doorRows } from './doors.ts';
import { identityRows } from './identity.ts';
import { platformRows } from './platform.ts';
import { policyRows } from './policy.ts';
import { registryRows } from './registry.ts';
import { resolveRows } from './resolve.ts';
import { type Row, table } from './row.ts';
import { signInPageRows } from './signin.ts';

const SUITES: Readonly<Record<string, () => Promise<Row[]>>> = {
  policy: policyRows,
  calls: callRows,
  resolve: resolveRows,
  audit: auditRows,
  identity: identityRows,
  registry: registryRows,
  bus: busRows,
  platform: platformRows,
  doors: doorRows,
  signin: signInPageRows,
};
const [name] = process.argv.slice(2).filter(argument => argument !== '--');

if (name === '--help') {
  process.stdout.write(
    `npm run bench [NAME]\n\n  Names: ${Object.keys(SUITES).join(', ')}; all of them without one.\n  Pairs run side by side in one run; .data/bench.json and a table are written.\n`,
  );
} else if (name !== undefined && !(name in SUITES)) {
  process.stderr.write(`No bench ${name}; there are ${Object.keys(SUITES).join(', ')}.\n`);
  process.exitCode = 64;
} else {
  const rows: Row[] = [];
  for (const [suite, run] of Object.entries(SUITES)) {
    if (name !== undefined && name !== suite) continue;
    process.stderr.write(`▸ ${suite} …\n`);
    rows.push(...(await run()));
  }
  const store = keyValueServer();
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}, ${store ? `${basename(store.file)} ${store.version}` : 'the packaged key-value store'}`;
  const directory = fileURLToPath(new URL('../../.data/', import.meta.url));
  mkdirSync(directory, { recursive: true, mode: 0o711 });
  writeFileSync(join(directory, 'bench.json'), JSON.stringify({ at: new Date().toISOString(), machine, rows }, null, 2));
  process.stdout.write(`${machine}\n\n${table(rows)}\n`);
}
