import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Seeded } from '@platform/kernel/test/seeded';
import { applied, type Mutant, mutantsOf } from './mutants.ts';
import { type Target, TARGETS } from './targets.ts';
import { runTests } from './test-run.ts';
import { WorkingCopy } from './working-copy.ts';

const HELP = `npm run mutations [-- options]

  Changes one small thing of a source file at a time, in a temporary copy, and runs the tests of that file: a change that no test
  notices survived.

  --file TEXT     only files whose path has TEXT in it
  --each N        at most N changes of each file, drawn by the seed (6)
  --all           every change of each file
  --seed N        draws others (1)
  --line N        only changes of line N
  --report PATH   writes the outcomes there as JSON
  --list          prints what would be changed, and changes nothing

  Files and their tests stand in scripts/mutations/targets.ts.
`;
/** A change can make a test wait for what does not come. */
const PATIENCE = { times: 3, atLeastMs: 60_000 };

const { values } = parseArgs({
  options: {
    file: { type: 'string', default: '' },
    each: { type: 'string', default: '6' },
    all: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
    line: { type: 'string' },
    report: { type: 'string' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const say = (text: string) => process.stdout.write(`${text}\n`);
const short = (text: string) => (text.length > 70 ? `${text.slice(0, 67)}...` : text).replaceAll(/\s+/g, ' ');
const described = ({ file }: Target, { line, kind, before, after }: Mutant) =>
  `${file}:${line}  ${kind}: ${short(before)}  →  ${short(after)}`;

interface Tried {
  readonly file: string;
  readonly mutant: Mutant;
  readonly outcome: 'caught' | 'survived';
}

function drawn({ file }: Target, root: string): Mutant[] {
  const all = mutantsOf(readFileSync(join(root, file), 'utf8')).filter(
    ({ line }) => values.line === undefined || line === Number(values.line),
  );
  if (values.all || values.line !== undefined) return all;
  const random = new Seeded(Number(values.seed) * 7919 + file.length);
  const chosen = new Set<Mutant>();
  while (chosen.size < Math.min(Number(values.each), all.length)) chosen.add(random.pick(all));
  return all.filter(mutant => chosen.has(mutant));
}

async function tryAll(copy: WorkingCopy, targets: readonly Target[], signal: AbortSignal): Promise<Tried[]> {
  const tried: Tried[] = [];
  for (const target of targets) {
    const whole = await runTests(copy, target.tests, 600_000, signal);
    if (signal.aborted) break;
    if (whole.outcome !== 'passed') {
      say(`x ${target.file}: its tests do not pass as they are\n${whole.said.slice(-2_000)}`);
      process.exitCode = 1;
      continue;
    }
    const source = readFileSync(join(copy.root, target.file), 'utf8');
    for (const mutant of drawn(target, copy.root)) {
      const run = await copy.with(target.file, applied(source, mutant), () =>
        runTests(copy, target.tests, Math.max(PATIENCE.atLeastMs, PATIENCE.times * whole.ms), signal),
      );
      if (signal.aborted) return tried;
      const outcome = run.outcome === 'passed' ? 'survived' : 'caught';
      tried.push({ file: target.file, mutant, outcome });
      say(`${outcome === 'survived' ? 'SURVIVED' : 'caught  '}  ${described(target, mutant)}`);
    }
  }
  return tried;
}

const targets = TARGETS.filter(({ file }) => file.includes(values.file));
if (values.help) process.stdout.write(HELP);
else if (values.list) for (const target of targets) for (const mutant of drawn(target, process.cwd())) say(described(target, mutant));
else {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort());
  using copy = new WorkingCopy();
  const tried = await tryAll(copy, targets, stop.signal);
  const survived = tried.filter(({ outcome }) => outcome === 'survived');
  say(
    `\n${tried.length} changes, ${tried.length - survived.length} caught, ${survived.length} survived${
      stop.signal.aborted ? '; stopped before the end' : ''
    }`,
  );
  for (const { file, mutant } of survived) say(`  ${described({ file, tests: [] }, mutant)}`);
  if (values.report) writeFileSync(values.report, JSON.stringify(tried, null, 2));
}
