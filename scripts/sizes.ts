import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/*
 * How large a file, a line and a folder may be (house 2), held for every tracked source file. What a tool wrote, and migrations, which are
 * rows of a log, are not counted. The length of functions is held by the linter.
 */

const root = fileURLToPath(new URL('../', import.meta.url));
const LINES = 300;
/** Of a file of tests, which shares what it boots. */
const TEST_LINES = 400;
/** Of a journey, which is one story from its first step to its last. */
const JOURNEY_LINES = 500;
const COLUMNS = 140;
const FILES = 15;
/** A text, a regular expression or a title from this length on is not broken for the sake of the line. */
const WHOLE = 60;
const LITERAL = /'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|\/(?:\\.|[^/\\])+\/[a-z]*/g;
/** Written by a tool, or a migration of the kernel whose text is part of its checksum. */
const UNCOUNTED = /(^|\/)(generated|api|migrations|dist)\/|\.generated\.|^kernel\/work\/work-schema\.ts$/;

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', '*.tsx', '*.mjs', '*.css'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter(file => file !== '' && !UNCOUNTED.test(file));
const faults = [...files.flatMap(faultsOf), ...fullFolders()];
for (const fault of faults) process.stdout.write(`x ${fault}\n`);
process.stdout.write(`  ${files.length} files, ${faults.length} too large\n`);
process.exit(faults.length > 0 ? 1 : 0);

function faultsOf(file: string): string[] {
  const lines = readFileSync(join(root, file), 'utf8').trimEnd().split('\n');
  const tooLong = lines.flatMap((line, at) =>
    breakable(line) > COLUMNS ? [`${file}:${at + 1} has ${[...line].length} characters, and ${COLUMNS} at most are read at a glance`] : [],
  );
  const most = file.startsWith('e2e/journeys/') ? JOURNEY_LINES : file.endsWith('.test.ts') ? TEST_LINES : LINES;
  if (lines.length <= most || file.endsWith('.css')) return tooLong;
  return [`${file} has ${lines.length} lines. Split it by noun: ${most} at most`, ...tooLong];
}

/** Columns of a line without the texts that stay in one piece. */
function breakable(line: string): number {
  if (line.length <= COLUMNS || /^\s*\/.+\/[a-z]*[,;]$/.test(line)) return Math.min(line.length, COLUMNS);
  return [...line.replaceAll(LITERAL, text => (text.length > WHOLE ? "''" : text))].length;
}

function fullFolders(): string[] {
  const counts = Map.groupBy(files, dirname);
  return [...counts]
    .filter(([, members]) => members.length >= FILES)
    .map(([folder, members]) => `${folder} holds ${members.length} files. Make rooms by noun: fewer than ${FILES}`);
}
