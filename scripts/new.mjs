#!/usr/bin/env node
import { relative } from 'node:path';
import { scaffold } from './new/scaffold.mjs';
import { root } from './toolchain.mjs';

const HELP = `npm run new -- service NAME [--title TITLE]
npm run new -- vertical NAME [--vertical OWNER] [--title TITLE] [--into FOLDER]

  service    a service of the platform, in plugins/NAME, with its line in catalog/platform.json
  vertical   a plugin of somebody else's, in FOLDER/NAME (the current folder when it is left out); OWNER is who its events and
             scopes belong to

  What is written passes \`npm run platform -- check FOLDER\` and its own tests.
`;

const args = process.argv.slice(2).filter(argument => argument !== '--');
const option = name => (args.includes(`--${name}`) ? args[args.indexOf(`--${name}`) + 1] : undefined);
const [kind, name] = args;
if (args.length === 0 || args.includes('--help')) {
  process.stdout.write(HELP);
  process.exit(args.length === 0 ? 64 : 0);
}
try {
  const { folder, files } = scaffold({ kind, name, vertical: option('vertical'), title: option('title'), into: option('into'), root });
  const shown = relative(process.cwd(), folder) || folder;
  process.stdout.write(`${files.map(file => `  ${shown}/${file}`).join('\n')}\n\n`);
  process.stdout.write(
    kind === 'service'
      ? 'Next: npm install (links it, and notes it in package-lock.json), then `scripts/golden.ts` under Node 26 (writes its api/ folder and\n      catalog/generated), node_modules/.bin/vitest run on its folder; npm start runs it in every distribution.\n'
      : `Next: npm run platform -- check ${shown}\n      PLATFORM_PLUGIN_DIRS=${folder} npm start\n`,
  );
} catch (error) {
  process.stderr.write(`${error.message}\n\n${HELP}`);
  process.exitCode = 64;
}
