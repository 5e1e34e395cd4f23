import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KERNEL_PROBLEMS } from '../kernel/base/kernel-problem.ts';
import type { Manifest } from '../kernel/base/manifest.ts';
import { KERNEL_CONFIG } from '../kernel/host/boot/configuration.ts';
import { explainKeys } from '../kernel/host/keys/key-settings.ts';
import { readPlugin } from '../kernel/host/plugin/loader.ts';
import { catalogActions } from '../kernel/host/catalog-actions.ts';
import { openApi } from '../kernel/http/open-api.ts';
import { PageSchema, Section } from '../kernel/http/pages/page-schema.ts';
import { ICONS } from '../sdk/core/contract.ts';
import { type JsonSchema, schemaFile, typesOf } from './schema-file.ts';

/*
 * Public promises as files somebody reviews (house 21): manifests, interfaces, scopes, events, problems, settings. `--check` refuses drift.
 */

const root = fileURLToPath(new URL('../', import.meta.url));
const check = process.argv.includes('--check');
const catalog = JSON.parse(readFileSync(join(root, 'catalog/platform.json'), 'utf8')) as {
  services: { package: string; service_type: string; start_priority: number }[];
};
const found = await Promise.all(
  catalog.services.map(async entry => ({ shipped: entry, ...(await readPlugin(join(root, 'plugins', entry.package))) })),
);
const manifests = found.map(({ manifest }) => manifest).sort((left, right) => (left.id < right.id ? -1 : 1));
const drift: string[] = [];

for (const { shipped, manifest, contract } of found) {
  if (manifest.id !== shipped.service_type || manifest.placement.tier !== shipped.start_priority)
    drift.push(`catalog/platform.json: ${shipped.package} is ${manifest.id}, tier ${manifest.placement.tier}`);
  golden(`plugins/${shipped.package}/api/manifest.json`, json(manifest));
  golden(`plugins/${shipped.package}/api/openapi.json`, json(openApi(manifest, contract.routes)));
}
golden(
  'catalog/generated/scopes.json',
  json(
    manifests
      .flatMap(catalogActions)
      .map(({ scope, service, title, admin, grants }) => ({ scope, service, title, admin, ...(grants ? { grants } : {}) })),
  ),
);
golden(
  'catalog/generated/events.json',
  json(
    manifests.flatMap(manifest =>
      Object.entries(manifest.events).map(([event, { title, family, payload }]) => ({
        event,
        service: manifest.id,
        family: family ?? manifest.family,
        title,
        payload,
      })),
    ),
  ),
);
golden('catalog/generated/contracts.ts', await contractExports());
const page = schemaFile(PageSchema as JsonSchema, [Section as JsonSchema]);
golden('catalog/schema/page.schema.json', json(page));
golden(
  'console/api/page-def.ts',
  `/** What a service says about a page (\`platform.admin-ui/1\`). Written by scripts/golden.ts from kernel/http/pages/page-schema.ts. */\n\n${typesOf(page)}\n`,
);
golden('console/api/page-icons.ts', pageIcons());
golden('catalog/generated/problems.md', problems());
golden('catalog/generated/env.md', settings());
const readme = join(root, 'README.md');
if (existsSync(readme)) {
  const text = readFileSync(readme, 'utf8');
  const [head = '', rest = ''] = text.split('<!-- settings -->');
  const [, tail = ''] = rest.split('<!-- /settings -->');
  if (rest) golden('README.md', `${head}<!-- settings -->\n\n${settings().split('\n').slice(2).join('\n')}\n<!-- /settings -->${tail}`);
}

if (drift.length > 0) {
  process.stdout.write(
    `${drift.map(line => `x ${line}`).join('\n')}\n  help: read the difference, then run \`node scripts/golden.ts\` under Node 26 and commit what it wrote.\n`,
  );
  process.exit(1);
}
process.stdout.write(`  ${check ? 'all current' : 'written'}\n`);

function golden(path: string, content: string): void {
  const absolute = join(root, path);
  if (existsSync(absolute) && readFileSync(absolute, 'utf8') === content) return;
  if (check) return void drift.push(`${path} is not what the contracts say`);
  mkdirSync(dirname(absolute), { recursive: true });
  writeFileSync(absolute, content);
}

/** One module with every contract of the platform, for those who write against all of them (KRN-025). */
async function contractExports(): Promise<string> {
  const lines = await Promise.all(
    found.map(async ({ shipped, contract }) => {
      const exported = (await import(join(root, 'plugins', shipped.package, 'contract', 'index.ts'))) as Record<string, unknown>;
      const [name] = Object.entries(exported).find(([, value]) => value === contract) ?? [];
      if (name === undefined) throw new Error(`plugins/${shipped.package}/contract/index.ts does not export its contract by a name`);
      return `export { ${name} } from '@platform/${shipped.package}/contract';`;
    }),
  );
  return `/** Written by scripts/golden.ts from catalog/platform.json. */\n${lines.sort().join('\n')}\n`;
}

/** The console knows the wire and not the SDK: the closed set of icons is written out for it. */
function pageIcons(): string {
  const lines = ICONS.map(name => `  '${name}',`).join('\n');
  return `/** What a page may be marked with. Written by scripts/golden.ts from the SDK. */\nexport const PAGE_ICONS = [\n${lines}\n] as const;\n\nexport type PageIcon = (typeof PAGE_ICONS)[number];\n`;
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function problems(): string {
  const rows = (entries: Readonly<Record<string, { status: number; title: string; retry: string; code?: string }>>, service: string) =>
    Object.entries(entries).map(
      ([name, { status, title, retry, code = name }]) => `| ${service} | \`${code}\` | ${status} | ${title} | ${retry} |`,
    );
  return `# Problems\n\n| Service | Code | Status | Title | Retry |\n|---|---|---|---|---|\n${[...rows(KERNEL_PROBLEMS, 'every'), ...manifests.flatMap(({ problems: declared, id }) => rows(declared, id))].join('\n')}\n`;
}

function settings(): string {
  type Setting = { env?: string; default?: unknown; description?: string; secret?: boolean };
  const rows = (schema: Manifest['config'], service: string) =>
    Object.values(((schema as { properties?: Record<string, Setting> } | undefined)?.properties ?? {}) as Record<string, Setting>).map(
      ({ env, default: value, description }) =>
        `| \`${env}\` | ${service} | ${value === undefined || value === '' ? '' : `\`${String(value)}\``} | ${description ?? ''} |`,
    );
  const keyRows = (manifest: Manifest) =>
    explainKeys(manifest).map(({ variable, description }) => `| \`${variable}\` | ${manifest.id} |  | ${description} |`);
  return `# Settings\n\n| Variable | Service | Default | What it is for |\n|---|---|---|---|\n${[...rows(KERNEL_CONFIG, 'kernel'), ...manifests.flatMap(manifest => [...rows(manifest.config, manifest.id), ...keyRows(manifest)])].join('\n')}\n`;
}
