import { setTimeout as delay } from 'node:timers/promises';
import { type Execution, GuestPool, type Outcome } from '../../../plugins/functions/src/isolation/guest-pool.ts';
import { ECHO, metered, SPIN } from '../../../plugins/functions/test/fixtures/guests.ts';
import { peerPackage } from '../bus/peers/peer-package.ts';
import { median, quantile, type Row } from '../row.ts';

const EXTISM = '1.0.3';
const CONCURRENCY = 64;
const OURS = 40_000;
const THEIRS = 256;
const WARM_UP = 2_000;
/** Others beside a guest in an endless loop: so many at once, for so long. */
const [OTHERS, MS, LOOP_ROUNDS] = [4, 1_500, 5];
const LIMIT_MS = 150;
const input = Buffer.from('{"amount_minor":250000}');

/** Executions of a small module, each in an instance of its own: here metered through the pool, there a fresh plugin in its worker. */
export async function* poolRows(): AsyncGenerator<Row> {
  await using pool = new GuestPool({ processes: 2, pages: 1_024, heapMb: 128, log: () => undefined });
  const echo = executionOf('echo', metered(ECHO, 1_024));
  const once = () => pool.run(echo).then(requireOutput);
  await rate(WARM_UP, once);
  const ours = await rate(OURS, once);
  const theirs = await extismRate();
  yield {
    name: 'fresh metered execution of a small module through the pool, 64 at once',
    value: ours,
    unit: '/s',
    timesPeer: 5,
    peer: { name: `@extism/extism ${EXTISM}, a fresh plugin in its worker, 64 at once`, value: theirs },
  };
  yield* loopRows(pool, once);
}

async function* loopRows(pool: GuestPool, once: () => Promise<void>): AsyncGenerator<Row> {
  const spin = { ...executionOf('spin', metered(SPIN, 1_024)), timeoutMs: LIMIT_MS };
  const ends: Outcome[] = [];
  const besides = {
    quiet: async () => undefined,
    usual: async () => void (await pool.run({ ...spin, fuel: 10_000_000 })),
    most: async () => void (await pool.run({ ...spin, fuel: 100_000_000 })),
    always: async () => void ends.push(await pool.run({ ...spin, fuel: Number.MAX_SAFE_INTEGER })),
  };
  /** In turn, for the machine's hour changes; the middle round counts. */
  const rounds: Record<keyof typeof besides, number[]> = { quiet: [], usual: [], most: [], always: [] };
  for (let round = 0; round < LOOP_ROUNDS; round++)
    for (const name of Object.keys(besides) as (keyof typeof besides)[]) rounds[name].push(await latencies(once, besides[name]));
  const [quiet, usual, most, always] = [median(rounds.quiet), median(rounds.usual), median(rounds.most), median(rounds.always)];
  const note = `${OTHERS} others at once, the middle of ${LOOP_ROUNDS} rounds; their p99 quiet ${quiet.toFixed(2)} ms`;
  const killed = pool.figures.respawned;
  yield {
    name: 'a guest in an endless loop with fuel to spare and a limit of 150 ms: its end, worst',
    value: Math.max(...ends.map(({ durationMs }) => durationMs)),
    unit: 'ms',
    limit: 250,
    note: `${killed} processes killed`,
  };
  yield { name: "others' p99 while such a guest runs nearly always, against quiet", value: always / quiet, unit: '×', limit: 1.1, note };
  yield { name: 'the same with the fuel of an execution (10 million), every 100 ms', value: usual / quiet, unit: '×', limit: 1.1 };
  yield { name: 'the same with the most fuel that an environment can set (100 million)', value: most / quiet, unit: '×', limit: 1.1 };
}

const executionOf = (module: string, bytes: Uint8Array): Execution => ({
  ...{
    module,
    program: { kind: 'core', bytes },
    hook: 'hook',
    input,
    fuel: 10_000_000,
    timeoutMs: 2_000,
    maxOutput: 262_144,
    maxCalls: 1,
    pages: 1_024,
  },
  call: async () => ({ fuel: 0 }),
});

function requireOutput({ output, fault }: Outcome): void {
  if (!output) throw new Error(`the module failed: ${fault?.detail}`);
}

async function rate(count: number, once: () => Promise<void>): Promise<number> {
  let left = count;
  const from = performance.now();
  const worker = async () => {
    while (left-- > 0) await once();
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return (count * 1_000) / (performance.now() - from);
}

/** The p99 of others, in milliseconds, while something else happens every tenth of a second. */
async function latencies(once: () => Promise<void>, beside: () => Promise<void>): Promise<number> {
  const until = performance.now() + MS;
  const times: number[] = [];
  const other = async () => {
    while (performance.now() < until) {
      const from = performance.now();
      await once();
      times.push(performance.now() - from);
      await delay(1);
    }
  };
  const loop = async () => {
    while (performance.now() < until) {
      await beside();
      await delay(100);
    }
  };
  await Promise.all([...Array.from({ length: OTHERS }, other), loop()]);
  return quantile(times, 0.99);
}

/** A plugin of the peer: takes its input and gives it back. */
type Extism = {
  createPlugin(
    source: { wasm: { data: Uint8Array }[] },
    options: object,
  ): Promise<{ call(name: string, input: Uint8Array): Promise<unknown>; close(): Promise<void> }>;
};
const BARE = Uint8Array.from([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7f, 3, 2, 1, 0, 7, 8, 1, 4, 0x68, 0x6f, 0x6f, 0x6b, 0, 0, 10, 6, 1, 4, 0, 0x41, 0,
  0x0b,
]);

async function extismRate(): Promise<number> {
  const { createPlugin } = peerPackage('@extism/extism', EXTISM).load<Extism>();
  const once = async () => {
    const plugin = await createPlugin({ wasm: [{ data: BARE }] }, { useWasi: false, runInWorker: true });
    await plugin.call('hook', input);
    await plugin.close();
  };
  await once();
  return rate(THEIRS, once);
}
