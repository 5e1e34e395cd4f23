import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/*
 * The import law (house 3), held by reading every import of every tracked source file.
 */

const root = fileURLToPath(new URL('../', import.meta.url));
const LAYERS: readonly (readonly string[])[] = [
  ['base'],
  ['storage', 'secrets', 'telemetry'],
  ['identity', 'policy', 'outbox', 'routing', 'work'],
  ['http'],
  ['host'],
];
const layerOf = (name: string) => LAYERS.findIndex(layer => layer.includes(name));
/** Packages that belong to the kernel: a plugin that imports one goes around it. */
const KERNEL_ONLY = [
  'koa',
  'ioredis',
  'tsyringe',
  'postgres',
  'pino',
  'undici',
  'ws',
  '@koa/router',
  'croner',
  'prom-client',
  '@cedar-policy/cedar-wasm',
];
/** What a plugin may use of npm: what its own package.json names (house 3: «listed per plugin»). */
const pluginPackages = (plugin: string): readonly string[] =>
  Object.keys(
    (JSON.parse(readFileSync(join(root, 'plugins', plugin, 'package.json'), 'utf8')) as { dependencies?: Record<string, string> })
      .dependencies ?? {},
  );
/** Parts of the kernel that tests of plugins stand on themselves, and why; everything else they have from the test kit. */
const STANDS_ON: Readonly<Record<string, readonly string[]>> = {
  // The hierarchies of a machine are opened as its start opens them.
  'plugins/certificate-authority/test/': ['host/boot/', 'identity/certificates/trust-anchors', 'outbox/relay/delivery'],
  // The scripts of the bus are held against the kernel's own connections, and its contract against the check of every start.
  'plugins/event-bus/test/': ['host/plugin/checks/', 'http/operation-call', 'storage/', 'test/policy-store'],
  // What an operator's command line gives the gateway.
  'plugins/gateway/test/': ['host/boot/settings', 'host/operator-actions'],
  // What the identity service signs is read by the verifier of every other service.
  'plugins/identity/test/keys/': ['identity/tokens/'],
  'plugins/identity/test/': ['http/pages/page-definition', 'storage/postgres/embedded-postgres'],
  // A trail of an earlier release is migrated by hand, a file at a time.
  'plugins/registry/test/audit/': ['outbox/outbox-schema', 'storage/schema/migrations'],
  // The machine under a supervisor is in a box, and keeps the registry of instances that a real one keeps.
  'plugins/supervisor/test/': ['host/machine/process-usage', 'host/service/key-value-port', 'routing/directory', 'test/seeded'],
};
/** Server-side files that serve what a face built: the pure renderer of the sign-in pages. */
const SERVES: Readonly<Record<string, string>> = { 'plugins/identity/src/': 'signin/' };

interface Fault {
  readonly file: string;
  readonly imported: string;
  readonly law: string;
}

/** Packages that one file loads: it makes sure that the patched one is there. */
const DRIVERS: Readonly<Record<string, string>> = { postgres: 'kernel/storage/postgres/postgres-driver.ts' };

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', '*.tsx'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter(Boolean);
const faults: Fault[] = files.flatMap(file => [...importsOf(file).flatMap(imported => judge(file, imported)), ...bareDrivers(file)]);
for (const { file, imported, law } of faults) process.stdout.write(`x ${file} imports '${imported}'\n  help: ${law}\n`);
process.stdout.write(`  ${files.length} files, ${faults.length} against the law\n`);
process.exit(faults.length > 0 ? 1 : 0);

function bareDrivers(file: string): Fault[] {
  const text = readFileSync(join(root, file), 'utf8');
  return Object.entries(DRIVERS)
    .filter(
      ([name, driver]) =>
        file !== driver && !file.startsWith('e2e/') && new RegExp(`^import (?!type )[^'"]*from '${name}'`, 'm').test(text),
    )
    .map(([name, driver]) => ({ file, imported: name, law: `The driver comes from ${driver}; of the package only its types.` }));
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8').replaceAll(/\/\*[\s\S]*?\*\//g, '');
  return [...text.matchAll(/^\s*(?:import|export)\s[^'"]*?from\s+'([^']+)'|^\s*import\s+'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/gm)].map(
    match => (match[1] ?? match[2] ?? match[3]) as string,
  );
}

function judge(file: string, imported: string): Fault[] {
  const target = imported.startsWith('.') ? relative(root, normalize(join(root, dirname(file), imported))) : imported;
  const law = lawFor(file, target, /\.(test|check)\.tsx?$/.test(file) || file.includes('/test/') || file.includes('/fixtures/'));
  return law ? [{ file, imported, law }] : [];
}

function lawFor(file: string, target: string, test: boolean): string | undefined {
  const [top = '', second = '', third = ''] = file.split('/');
  const npm = !target.includes('/') || target.startsWith('@') ? packageOf(target) : undefined;
  const builtin = target.startsWith('node:');
  if (top === 'kernel') {
    if (test) return undefined;
    if (/^(plugins|console|signin|e2e)\//.test(target) || (target.startsWith('@platform/') && !/^@platform\/(sdk|checks)/.test(target)))
      return 'The kernel knows no service. Ask for what you need through an interface, or by wire path.';
    const [, from] = /^kernel\/([a-z]+)\//.exec(file) ?? [];
    const [, to] = /^kernel\/([a-z]+)\//.exec(target) ?? [];
    if (from && to && from !== to && layerOf(to) > layerOf(from))
      return `kernel/${from} stands left of kernel/${to}. Turn the dependency around, or move the file.`;
    if (from && to && from !== to && layerOf(to) === layerOf(from) && layerOf(from) === 1)
      return `kernel/${from} and kernel/${to} are neighbours; let the layer above bring them together.`;
    return undefined;
  }
  if (top === 'plugins' && third === 'contract') {
    const own = target.startsWith(`plugins/${second}/contract/`);
    return own || target === '@platform/sdk/contract' || /^@platform\/[a-z-]+\/contract$/.test(target)
      ? undefined
      : 'A contract is pure data: only `@platform/sdk/contract` and other contracts.';
  }
  if (top === 'plugins') {
    if (test)
      return playsKernel(file, /^(?:@platform\/)?kernel\/(.*)$/.exec(target)?.[1])
        ? "A plugin's test has the kernel from `@platform/testing`: `boot()` gives it the real context, doors and work, the rest is exported."
        : undefined;
    if (target.startsWith(`plugins/${second}/`)) return undefined;
    if (Object.entries(SERVES).some(([from, to]) => file.startsWith(from) && target.startsWith(to))) return undefined;
    if (target.startsWith('plugins/')) return "Another plugin's inside. Import its `/contract` and call it through `ctx.services`.";
    if (target.startsWith('kernel/') || target.startsWith('@platform/kernel')) return 'A plugin reaches the kernel through `ctx` only.';
    if (builtin || target === '@platform/sdk' || target === '@platform/checks' || /^@platform\/[a-z-]+\/contract$/.test(target))
      return undefined;
    if (npm && KERNEL_ONLY.includes(npm)) return `${npm} belongs to the kernel; \`ctx\` has what you need.`;
    if (pluginPackages(second).includes(packageOf(target))) return undefined;
    return `${npm ?? target} is not among the dependencies of plugins/${second}/package.json. Add it there with a reason, or do without.`;
  }
  if (top === 'console' || top === 'signin') {
    if (/^(plugins|kernel|sdk)\//.test(target) || target.startsWith('@platform/')) return 'A face knows the wire, not the code behind it.';
    return undefined;
  }
  if (top === 'sdk' && second === 'core' && !test)
    return target.startsWith('sdk/core/') || target === 'typebox' || builtin ? undefined : '`sdk/core` has no dependency but typebox.';
  if (top === 'sdk' && second === 'checks' && !test)
    return target.startsWith('sdk/checks/') || target === '@platform/sdk' || target === 'croner'
      ? undefined
      : '`sdk/checks` stands on the SDK alone: whoever takes a manifest in can call it.';
  if (file.startsWith('e2e/verticals/'))
    return /^e2e\/verticals\//.test(target) ||
      builtin ||
      (test && target === 'vitest') ||
      ['@platform/sdk', '@platform/sdk/contract', '@platform/contracts', '@platform/client', '@platform/testing'].includes(target)
      ? undefined
      : 'A vertical is written against the published packages alone.';
  return undefined;
}

function playsKernel(file: string, part: string | undefined): boolean {
  const own = Object.entries(STANDS_ON).flatMap(([tests, parts]) => (file.startsWith(tests) ? parts : []));
  return part !== undefined && !own.some(each => part.startsWith(each));
}

function packageOf(specifier: string): string {
  const [first = '', second = ''] = specifier.split('/');
  return specifier.startsWith('@') ? `${first}/${second}` : first;
}
