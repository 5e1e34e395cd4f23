import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { FaultRun } from './fault-run.ts';
import { FaultStack } from './fault-stack.ts';
import { FAULTS, FILL_DISK } from './faults.ts';

const RUNS_PER_STACK = 20;
const SMALL_MB = 400;
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '20' },
    seed: { type: 'string' },
    only: { type: 'string' },
    each: { type: 'boolean' },
    help: { type: 'boolean' },
  },
});

if (values.help) {
  process.stdout.write(
    `npm run faults [-- --runs N] [--seed N] [--only FAULT | --each]\n\n  Producers and consumers at work on two bus processes while faults are made; then what was acknowledged is compared with what is there.\n  Faults: ${Object.keys(FAULTS).join(', ')}; one to three a run, as the seed says. "${FILL_DISK}" only by name and as root.\n  --each makes every fault once: the short form of the tests.\n  Reports go to .data/faults.jsonl, one line a run.\n`,
  );
} else if (values.only !== undefined && values.only !== FILL_DISK && !(values.only in FAULTS)) {
  process.stderr.write(`No fault ${values.only}; there are ${Object.keys(FAULTS).join(', ')}.\n`);
  process.exitCode = 64;
} else {
  const each = values.each ? Object.keys(FAULTS) : [];
  const runs = each.length || Number(values.runs);
  const first = values.seed !== undefined ? Number(values.seed) : values.each ? 1 : Date.now() % 1_000_000_000;
  const directory = fileURLToPath(new URL('../../.data/', import.meta.url));
  mkdirSync(directory, { recursive: true, mode: 0o711 });
  let [broken, acknowledged] = [0, 0];
  for (let done = 0; done < runs; ) {
    await using stack = await FaultStack.start(values.only === FILL_DISK ? { small: SMALL_MB } : {});
    for (const end = Math.min(runs, done + RUNS_PER_STACK); done < end; done++) {
      const report = await new FaultRun(stack, first + done).run(each[done] ?? values.only);
      appendFileSync(join(directory, 'faults.jsonl'), `${JSON.stringify({ at: new Date().toISOString(), ...report })}\n`);
      acknowledged += report.acknowledged;
      if (report.violations.length > 0) broken += 1;
      process.stdout.write(
        `${
          report.violations.length === 0 ? 'whole ' : 'BROKEN'
        } seed ${report.seed}: ${report.faults.join(', ')}; ${report.acknowledged} acknowledged, ${report.ms} ms\n`,
      );
      for (const { rule, event, detail } of report.violations.slice(0, 10)) process.stdout.write(`  ${rule}: ${event} ${detail}\n`);
    }
  }
  process.stdout.write(`${runs} runs, ${acknowledged} events acknowledged, ${broken} runs with something lost, out of order or false\n`);
  process.exitCode = broken === 0 ? 0 : 1;
}
