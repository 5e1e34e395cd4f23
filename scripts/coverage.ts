import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ContractCoverage } from '@platform/testing';

/*
 * Adds up what all test files have seen of every contract, and fails where a promise was seen by none: a route that never answered, a
 * problem that nobody was refused with, an event that never reached the bus, a change that left no entry in the audit trail (house 19).
 * What a plugin excepts stands in its own `test/coverage.json`, each with its reason; an exception that is not needed any more fails too.
 */

const KINDS = ['routes', 'problems', 'events', 'audits'] as const;
type Kind = (typeof KINDS)[number];
type Exceptions = Readonly<Partial<Record<Kind, Readonly<Record<string, string>>>>>;

const HELP = `npm test -- --only unit, then node scripts/coverage.ts FOLDER

  Adds up the contract coverage that test files left in FOLDER (PLATFORM_COVERAGE), and fails where a promise was seen by none.
`;
const root = fileURLToPath(new URL('../', import.meta.url));
const [folder] = process.argv.slice(2);
if (folder === undefined || folder === '--help') {
  process.stdout.write(HELP);
  process.exit(folder === undefined ? 2 : 0);
}

const plugins = new Map(readdirSync(join(root, 'plugins')).flatMap(name => idOf(name).map(id => [id, name] as const)));
const services = new Map<string, { promised: ContractCoverage; kept: Record<Kind, Set<string>> }>();
for (const file of readdirSync(folder)) {
  const { promised, kept } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Record<'promised' | 'kept', ContractCoverage>;
  // A probe that a test made up under the id of a service keeps no promise of that service.
  if (!isGolden(promised)) continue;
  const all = services.get(promised.service) ?? {
    promised,
    kept: { routes: new Set(), problems: new Set(), events: new Set(), audits: new Set() },
  };
  for (const kind of KINDS) for (const name of kept[kind]) all.kept[kind].add(name);
  services.set(promised.service, all);
}

const faults = [...plugins].flatMap(([id, name]) => faultsOf(id, name));
for (const fault of faults) process.stdout.write(`x ${fault}\n`);
process.exit(faults.length > 0 ? 1 : 0);

/** Whether a contract is the one that its plugin publishes. */
function isGolden({ service, routes }: ContractCoverage): boolean {
  const name = plugins.get(service);
  if (name === undefined) return false;
  const golden = JSON.parse(readFileSync(join(root, 'plugins', name, 'api', 'manifest.json'), 'utf8')) as { routes: object };
  return routes.every(route => route in golden.routes) && routes.length > 0;
}

/** The id of the plugin in a folder, as its golden manifest says it. */
function idOf(name: string): string[] {
  const manifest = join(root, 'plugins', name, 'api', 'manifest.json');
  return existsSync(manifest) ? [(JSON.parse(readFileSync(manifest, 'utf8')) as { id: string }).id] : [];
}

function faultsOf(id: string, name: string): string[] {
  const seen = services.get(id);
  if (!seen) return [`${id}: no test of plugins/${name} boots it with the test kit`];
  const exceptions = exceptionsOf(name);
  process.stdout.write(`  ${id}: ${KINDS.map(kind => `${kind} ${seen.kept[kind].size}/${seen.promised[kind].length}`).join(', ')}\n`);
  return KINDS.flatMap(kind => {
    const excepted = Object.keys(exceptions[kind] ?? {});
    const missing = seen.promised[kind].filter(each => !seen.kept[kind].has(each));
    return [
      ...missing.filter(each => !excepted.includes(each)).map(each => `${id}: ${kind}: ${each} was seen by no test`),
      ...excepted
        .filter(each => !missing.includes(each))
        .map(each => `${id}: ${kind}: ${each} is excepted in plugins/${name}/test/coverage.json and need not be`),
    ];
  });
}

function exceptionsOf(name: string): Exceptions {
  const file = join(root, 'plugins', name, 'test', 'coverage.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Exceptions) : {};
}
