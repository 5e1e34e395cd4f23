import { differingSeeds } from '../../../plugins/functions/test/fixtures/observation.ts';
import { ARCHIVE, compare, isThere, metered, sharing, sliced } from '../../../plugins/functions/test/fixtures/spec-suite.ts';
import type { Row } from '../row.ts';

const MODULES = 1_500;
const WAYS = { 'metered by itself': metered, 'with shared counters': sharing, 'with fuel by 23 at a time': sliced };

/** The whole suite of the WebAssembly specification, and generated modules, metered and in the plain engine side by side. */
export async function* wasmSpecRows(): AsyncGenerator<Row> {
  if (!isThere) process.stderr.write(`  The specification's suite is not on this machine: ${ARCHIVE}; PLATFORM_WASM_TESTSUITE names it.\n`);
  else
    for (const [name, change] of Object.entries(WAYS)) {
      const { seen, held, differences } = compare([change]);
      for (const each of differences.slice(0, 20)) process.stderr.write(`  ${each}\n`);
      const note = `${held.toLocaleString('en')} assertions hold in the plain engine, of ${seen.toLocaleString('en')} commands`;
      yield {
        name: `specification's suite, ${name}: seen otherwise than in the plain engine`,
        value: differences.length,
        unit: 'commands',
        limit: 0,
        note,
      };
    }
  yield {
    name: `${MODULES.toLocaleString('en')} generated modules, metered against plain: different`,
    value: differingSeeds(MODULES).length,
    unit: 'modules',
    limit: 0,
  };
}
