import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandOf, readArguments } from '@platform/sdk';
import { COMPILERS, type Language, LANGUAGES } from './compiler.ts';

const USAGE = `platform func new NAME [--language ${LANGUAGES.join('|')}]

  Writes a function with a test into the folder NAME: a rule that accepts or rejects a loan. AssemblyScript when no language is named.
  function.json says what it is, hook-protocol.d.ts what goes in and comes out, README.md what to do next.`;

const TEMPLATES = fileURLToPath(new URL('./templates/', import.meta.url));
const NAME = /^[a-z][a-z0-9-]{0,40}$/;

export default commandOf<{ folder: string; name: string; language: Language }>({
  usage: USAGE,
  read: args => {
    const { options, rest } = readArguments(args, ['language']);
    const language = (options.language ?? 'assemblyscript') as Language;
    const [folder] = rest;
    const name = folder === undefined ? '' : (resolve(folder).split(/[\\/]/).at(-1) ?? '');
    return folder !== undefined && rest.length === 1 && NAME.test(name) && LANGUAGES.includes(language)
      ? { folder, name, language }
      : undefined;
  },
  run: async ({ folder, name, language }, { print }) => {
    if (existsSync(folder)) throw new Error(`${folder} is there already; choose another name.`);
    const { source, missing } = COMPILERS[language];
    for (const part of ['common', language]) write(join(TEMPLATES, part), folder, { name, language, source });
    print(`${folder} has a function in ${language}.`);
    const lacks = missing(folder);
    if (lacks) print(lacks);
    print(`Next: platform func build ${folder}, platform func test ${folder}`);
    return 0;
  },
});

function write(template: string, folder: string, words: Readonly<Record<string, string>>): void {
  for (const entry of readdirSync(template, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const from = join(entry.parentPath, entry.name);
    const to = join(folder, relative(template, from).replace(/\.txt$/, ''));
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(
      to,
      readFileSync(from, 'utf8').replaceAll(/\{\{(\w+)\}\}/g, (_, word: string) => words[word] ?? ''),
      { flag: 'wx' },
    );
  }
}
