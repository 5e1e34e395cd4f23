import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ContractCoverage } from '@platform/testing';

/*
 * Adds up what all test files have seen of every contract, and fails where a promise was seen by none: a route that never answered, a
 * problem that nobody was refused with, an event that never reached the bus, a change that left no entry in the audit trail (house 19).
 * What a plugin excepts stands in its own `test/coverage.json`, under its reason; one that
 * is not needed any more is told of.
 */

const KINDS = ['routes', 'problems', 'events', 'audits'] as const;
type Kind = (typeof KINDS)[number];
const TOLERATED = 5;
/** What is excepted, with the reason. */
type Exceptions = Readonly<Partial<Record<Kind, Readonly<Record<string, string>>>>>;
interface GoldenManifest {
  readonly id: string;
  readonly routes: Readonly<Record<string, { readonly door: string; readonly method: string }>>;
  readonly problems: object;
  readonly events: object;
}

const HELP = `npm test -- --only unit, then node scripts/coverage.ts FOLDER

  Adds up the contract coverage that test files left in FOLDER (PLATFORM_COVERAGE), and fails where a promise was seen by none.
`;
const root = fileURLToPath(new URL('../', import.meta.url));
const [folder] = process.argv.slice(2);
if (folder === undefined || folder === '--help') {
  process.stdout.write(HELP);
  process.exit(folder === undefined ? 2 : 0);
}

const plugins = readdirSync(join(root, 'plugins')).flatMap(name => promisesOf(name).map(promised => ({ name, promised })));
const kept = new Map(plugins.map(({ promised }) => [promised.service, setsOf()]));
for (const file of readdirSync(folder)) {
  const seen = (JSON.parse(readFileSync(join(folder, file), 'utf8')) as { kept: ContractCoverage }).kept;
  const all = kept.get(seen.service);
  for (const kind of KINDS) for (const name of seen[kind]) all?.[kind].add(name);
}

const faults = plugins.flatMap(({ name, promised }) => faultsOf(name, promised));
for (const fault of faults) process.stdout.write(`x ${fault}\n`);
// Some problems show only where a machine is slow enough, or has a tool that others lack: a few of them are told of and fail nothing.
const [problems, others] = [
  faults.filter(fault => fault.includes(': problems: ')),
  faults.filter(fault => !fault.includes(': problems: ')),
];
process.exit(others.length > 0 || problems.length > TOLERATED ? 1 : 0);

function setsOf(): Record<Kind, Set<string>> {
  return { routes: new Set(), problems: new Set(), events: new Set(), audits: new Set() };
}

/** What the plugin in a folder promises, as its golden manifest says it. */
function promisesOf(name: string): ContractCoverage[] {
  const path = join(root, 'plugins', name, 'api', 'manifest.json');
  if (!existsSync(path)) return [];
  const { id, routes, problems, events } = JSON.parse(readFileSync(path, 'utf8')) as GoldenManifest;
  const requests = Object.entries(routes).filter(([, { door }]) => door === 'request');
  return [
    {
      service: id,
      routes: requests.map(([route]) => route),
      problems: Object.keys(problems),
      // The kernel makes and announces the policies of a service; its own tests see that one.
      events: Object.keys(events).filter(event => !event.endsWith(':policy:updated')),
      audits: requests.filter(([, { method }]) => method !== 'GET').map(([route]) => route),
    },
  ];
}

function faultsOf(name: string, promised: ContractCoverage): string[] {
  const { service } = promised;
  const file = join(root, 'plugins', name, 'test', 'coverage.json');
  const exceptions = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Exceptions) : {};
  const seen = (kind: Kind, each: string) => kept.get(service)?.[kind].has(each) ?? false;
  const figures = KINDS.map(kind => `${kind} ${promised[kind].filter(each => seen(kind, each)).length}/${promised[kind].length}`);
  process.stdout.write(`  ${service}: ${figures.join(', ')}\n`);
  return KINDS.flatMap(kind => {
    const excepted = Object.keys(exceptions[kind] ?? {});
    const missing = promised[kind].filter(each => !seen(kind, each));
    const faults = missing.filter(each => !excepted.includes(each)).map(each => `${each} was seen by no test`);
    for (const each of excepted.filter(one => !missing.includes(one)))
      process.stdout.write(`  ${service}: ${kind}: ${each} was seen; its exception in plugins/${name}/test/coverage.json may go\n`);
    return faults.map(fault => `${service}: ${kind}: ${fault}`);
  });
}
