import { readFileSync } from 'node:fs';
import asc from 'assemblyscript/asc';
import { meter } from '../../../plugins/functions/src/metering/metered-module.ts';
import type { Row } from '../row.ts';

const ROUNDS = 25;
const WARM_UP = 4;
const FUEL = 10n ** 15n;

/** What metering costs the kernels of facts on WebAssembly: the best of rounds in turn, plain and metered, in this process. */
export async function* meteringRows(): AsyncGenerator<Row> {
  const { binary, error, stderr } = await asc.compileString(readFileSync(new URL('./kernels.as.txt', import.meta.url), 'utf8'), {
    optimizeLevel: 3,
    noAssert: true,
    runtime: 'stub',
  });
  if (error || !binary) throw new Error(String(stderr));
  const bytes = Uint8Array.from(binary);
  const run = (module: Uint8Array<ArrayBuffer>) =>
    new WebAssembly.Instance(new WebAssembly.Module(module), { env: { abort: () => undefined } }).exports as Record<string, () => number>;
  const [plain, metered] = [run(bytes), run(meter(bytes, { fuel: FUEL }).bytes as Uint8Array<ArrayBuffer>)];
  (metered['$rt.start'] as (() => void) | undefined)?.();
  const kernels = Object.keys(plain).filter(name => typeof plain[name] === 'function');
  const ratios = kernels.map(name => ({ name, ratio: ratioOf(plain[name] as () => number, metered[name] as () => number) }));
  const mean = Math.exp(ratios.reduce((sum, { ratio }) => sum + Math.log(ratio), 0) / ratios.length);
  yield {
    name: 'metering, geometric mean over nine kernels',
    value: mean,
    unit: '× plain',
    limit: 1.35,
    note: ratios.map(({ name, ratio }) => `${name} ${ratio.toFixed(2)}`).join(', '),
  };
}

function ratioOf(plain: () => number, metered: () => number): number {
  const best = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < ROUNDS + WARM_UP; round++) {
    const given = [plain, metered].map((kernel, which) => {
      const from = performance.now();
      const result = kernel();
      const took = performance.now() - from;
      if (round >= WARM_UP) best[which] = Math.min(best[which] as number, took);
      return result;
    });
    if (given[0] !== given[1]) throw new Error('a metered kernel gave another result');
  }
  return (best[1] as number) / (best[0] as number);
}
