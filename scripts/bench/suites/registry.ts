import { setTimeout as delay } from 'node:timers/promises';
import type { Persona } from '@platform/testing';
import { RegistryFleet } from './registry-fleet.ts';
import { median, quantile, type Row, type Size } from '../row.ts';
import type { Answer } from '../../fleet/service-child.ts';

const AT_ONCE = 16;
interface Counts {
  readonly sequences: number;
  readonly founders: number;
  readonly kills: number;
  readonly environments: number;
  readonly bootstraps: number;
}
const COUNTS: Readonly<Record<Size, Counts>> = {
  short: { sequences: 1_000, founders: 64, kills: 2, environments: 200, bootstraps: 100 },
  long: {
    sequences: Number(process.env['PLATFORM_BENCH_SEQUENCES'] ?? 100_000),
    founders: 1_000,
    kills: 10,
    environments: 2_000,
    bootstraps: 2_000,
  },
};
const ORGS_OF_ONE = 200;
const WARM_UP = 100;

/**
 * Tenants made and used across two registry processes that are killed in between; environments; the bootstrap of somebody with many
 * organizations.
 */
export async function* registryRows(size: Size): AsyncGenerator<Row> {
  const of = COUNTS[size];
  await using fleet = await RegistryFleet.start();
  const founders = await fleet.founders(of.founders);
  const used = await createAndUse(fleet, founders, of);
  yield {
    name: `create an organization on one process, use it on the other: refusals in ${used.done.toLocaleString('en')} sequences, ${used.kills} kills`,
    value: used.refused,
    unit: '',
    limit: 0,
    note: `${used.interrupted} creates cut off by a kill are not among them; ${Math.round(used.perSecond)} sequences/s`,
  };
  await fleet.settled();
  const environments = await createEnvironments(fleet, founders.slice(0, 64), of);
  yield {
    name: 'create an environment, all provisioning included, 8 at a time, p99',
    value: quantile(environments, 0.99),
    unit: 'ms',
    limit: 120,
    note: `median ${median(environments).toFixed(1)} ms`,
  };
  const bootstrap = await bootstraps(fleet, of);
  yield {
    name: `bootstrap of a person with ${ORGS_OF_ONE} organizations, one after the other, p99`,
    value: quantile(bootstrap.alone, 0.99),
    unit: 'ms',
    limit: 50,
    note: `median ${median(bootstrap.alone).toFixed(1)} ms`,
  };
  yield {
    name: 'the same, 4 at a time',
    value: quantile(bootstrap.four, 0.99),
    unit: 'ms',
    note: `median ${median(bootstrap.four).toFixed(1)} ms`,
  };
  const { rss } = await fleet.registries[0].usage();
  yield { name: 'resident memory of a registry process after that', value: rss / 2 ** 20, unit: 'MB' };
}

/** The caller's next request after a create, on the process that did not create it. */
async function createAndUse(fleet: RegistryFleet, founders: readonly Persona[], { sequences, kills }: Counts) {
  const counts = { done: 0, refused: 0, interrupted: 0, kills: 0 };
  let next = 0;
  let ordered = 0;
  let killing: Promise<void> = Promise.resolve();
  const startedAt = performance.now();
  const every = Math.ceil(sequences / kills);
  const kill = async (which: 0 | 1) => {
    await fleet.registries[which].kill();
    await fleet.registries[which].start();
    counts.kills += 1;
  };
  await concurrently(AT_ONCE, async () => {
    while (counts.done < sequences) {
      const turn = next++;
      // By what is done, not by what was tried: while both are away, nothing more is killed.
      if (ordered < kills && counts.done >= (ordered + 1) * every - AT_ONCE) {
        const which = (ordered++ % 2) as 0 | 1;
        killing = killing.then(() => kill(which));
      }
      const person = founders[turn % founders.length] as Persona;
      const [first, second] = fleet.registries;
      // While one of them is down, the other makes and serves.
      const one = (turn % 2 === 0 && first.up) || !second.up ? first : second;
      const other = one === first && second.up ? second : first;
      const token = fleet.tokenOf(person);
      const created = await one
        .call('POST', '/v1/o', token, { slug: `bench-${turn}`, display_name: `Bench ${turn}` })
        .catch(() => undefined);
      if (created?.status !== 200) {
        if (created && created.status !== 503) throw new Error(`create answered ${created.status} ${JSON.stringify(created.json)}`);
        counts.interrupted += 1;
        await delay(1);
        continue;
      }
      const answer = await untilAnswered(
        () => other.call('GET', `/v1/org/${String(created.json['org_id'])}`, token),
        () => one.call('GET', `/v1/org/${String(created.json['org_id'])}`, token),
      );
      if (answer.status !== 200) counts.refused += 1;
      counts.done += 1;
      if (counts.done % 5_000 === 0)
        process.stderr.write(`  ${counts.done.toLocaleString('en')} of ${sequences.toLocaleString('en')}, ${counts.refused} refused\n`);
    }
  });
  await killing;
  return { ...counts, perSecond: counts.done / ((performance.now() - startedAt) / 1_000) };
}

/** A connection that breaks under a kill is no answer: the request is made again, on the other process in turn. */
async function untilAnswered(...ways: readonly (() => Promise<Answer>)[]): Promise<Answer> {
  for (let turn = 0; turn < 3_000; turn++) {
    const answer = await (ways[turn % ways.length] as () => Promise<Answer>)().catch(() => undefined);
    if (answer && answer.status !== 503) return answer;
    await delay(10);
  }
  throw new Error('nobody answered');
}

async function createEnvironments(fleet: RegistryFleet, founders: readonly Persona[], { environments }: Counts): Promise<number[]> {
  const [registry] = fleet.registries;
  const orgs = await Promise.all(
    founders.map(async person => ({
      person,
      org: await expectOk(
        registry.call('POST', '/v1/o', fleet.tokenOf(person), { slug: `envs-${person.id.slice(-12)}`, display_name: 'Environments' }),
      ),
    })),
  );
  const times: number[] = [];
  let next = 0;
  await concurrently(8, async () => {
    while (next < environments) {
      const turn = next++;
      const { person, org } = orgs[turn % orgs.length] as (typeof orgs)[number];
      const start = performance.now();
      await expectOk(
        registry.call('POST', '/v1/e', fleet.tokenOf(person), { org_id: org['org_id'], slug: `env-${turn}`, display_name: `Env ${turn}` }),
      );
      if (turn >= 100) times.push(performance.now() - start);
    }
  });
  return times;
}

/** Milliseconds of each call: as one console asks, and as four do that begin in the same moment. */
async function bootstraps(fleet: RegistryFleet, { bootstraps: count }: Counts): Promise<{ alone: number[]; four: number[] }> {
  const [person] = await fleet.founders(1);
  const [registry] = fleet.registries;
  const token = fleet.tokenOf(person as Persona);
  let made = 0;
  await concurrently(8, async () => {
    while (made < ORGS_OF_ONE) {
      const turn = made++;
      const org = await expectOk(registry.call('POST', '/v1/o', token, { slug: `mine-${turn}`, display_name: `Mine ${turn}` }));
      await expectOk(registry.call('POST', '/v1/e', token, { org_id: org['org_id'], slug: 'production', display_name: 'Production' }));
    }
  });
  await fleet.settled();
  const whole = await expectOk(registry.call('GET', '/v1/bootstrap', token));
  if ((whole['orgs'] as object[]).length !== ORGS_OF_ONE) throw new Error('the bootstrap is not whole');
  const known = Buffer.from(JSON.stringify(whole));
  const asked = async (atOnce: number, wanted: number) => {
    const times: number[] = [];
    await concurrently(atOnce, async () => {
      while (times.length < wanted) {
        const start = performance.now();
        if (!(await registry.repeats('/v1/bootstrap', token, known))) throw new Error('another bootstrap than before');
        times.push(performance.now() - start);
      }
    });
    return times;
  };
  await asked(4, WARM_UP);
  return { alone: await asked(1, count), four: await asked(4, count) };
}

async function expectOk(call: Promise<Answer>): Promise<Record<string, unknown>> {
  const { status, json } = await call;
  if (status !== 200) throw new Error(`answered ${status} ${JSON.stringify(json)}`);
  return json;
}

async function concurrently(count: number, work: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, work));
}
