import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const TEMPLATE = join(dirname(fileURLToPath(import.meta.url)), 'template');
const NAME = /^[a-z][a-z0-9]{0,30}$/;
const TIER = 50;

/**
 * Writes a plugin that passes its checks and conformance. `service`: one of the platform's own, under `plugins/` of `root`, with its line
 * in the catalog. `vertical`: a folder of its own in `into`. Answers the folder and its files; throws an Error that says what is wrong.
 */
export function scaffold({ kind, name, vertical, title, root, into }) {
  if (kind !== 'service' && kind !== 'vertical') throw new Error(`There is no "${kind}"; write service or vertical.`);
  for (const word of [name, ...(vertical === undefined ? [] : [vertical])])
    if (!NAME.test(word ?? '')) throw new Error(`"${word ?? ''}" is no name: 1 to 31 characters of a-z and 0-9, a letter first.`);
  const own = kind === 'service' ? 'platform' : (vertical ?? name);
  const folder = kind === 'service' ? join(root, 'plugins', name) : join(into ?? process.cwd(), name);
  if (existsSync(folder)) throw new Error(`${folder} is there already; choose another name.`);
  const catalog = kind === 'service' ? catalogWith(root, name) : undefined;
  const words = {
    service: name,
    folder: name,
    vertical: own,
    title: title ?? name.charAt(0).toUpperCase() + name.slice(1),
    verticalLine: own === 'platform' ? '' : `\n  vertical: '${own}',`,
    scopes: own === 'platform' ? '' : `${own}:`,
  };
  const files = filesOf(TEMPLATE).map(file => {
    const text = readFileSync(join(TEMPLATE, file), 'utf8').replaceAll(/\{\{(\w+)\}\}/g, (_, word) => words[word]);
    const path = join(folder, file.replace(/\.txt$/, ''));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text, { flag: 'wx' });
    return relative(folder, path);
  });
  if (catalog) writeFileSync(catalog.path, catalog.text);
  return { folder, files };
}

function catalogWith(root, name) {
  const path = join(root, 'catalog', 'platform.json');
  const text = readFileSync(path, 'utf8');
  if (JSON.parse(text).services.some(({ service_type }) => service_type === name))
    throw new Error(`The catalog has a service ${name} already.`);
  const entry = `{ "service_type": "${name}", "package": "${name}", "start_priority": ${TIER}, "singleton": false, "placement": [], "min_instances": 1 }`;
  return { path, text: text.replace(/\n(\s*)\]\s*\}\s*$/, `,\n$1  ${entry}\n$1]\n}\n`) };
}

const filesOf = folder =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter(entry => entry.isFile())
    .map(entry => relative(TEMPLATE, join(entry.parentPath ?? entry.path, entry.name)))
    .sort();
