import { setTimeout as delay } from 'node:timers/promises';
import { processUsage } from '@platform/kernel/host/machine/process-usage';
import { recordOf } from '@platform/kernel/storage/process-record';
import { peerRows } from '../fleet/peer-rows.ts';
import { SupervisedPlatform } from '../fleet/supervised-platform.ts';
import { memoryOf } from '../load/held-memory.ts';
import type { Row } from '../row.ts';

const FEW_UPGRADES = 3;
/** What the requirement speaks of. */
const MANY_UPGRADES = 50;
const MANY_REQUESTS = 200_000;
const PROGRESS = 10;
const REST_S = 30;
const UPGRADED = ['sys', 'bff', 'proxy'];

/** The fleet supervisor: what it needs at rest, how fast it starts everything, and what clients see of upgrades and deaths. */
export async function* fleetRows(): AsyncIterable<Row> {
  await using platform = new SupervisedPlatform();
  await platform.start();
  await platform.stop();
  yield { name: 'supervised start of all services, later start', value: await platform.start(), unit: 's', limit: 8 };
  yield* atRest(platform);
  for (const service of UPGRADED) yield (await upgrades(platform, service, FEW_UPGRADES)).row;
  yield* deaths(platform);
  await platform.stop();
  yield* peerRows();
}

async function* atRest(platform: SupervisedPlatform): AsyncIterable<Row> {
  await delay(5_000);
  const id = recordOf(platform.pid);
  const before = processUsage(id);
  const began = performance.now();
  await delay(REST_S * 1_000);
  const after = processUsage(id);
  if (!before || !after) throw new Error('the supervisor is gone');
  yield {
    name: 'supervisor at rest: CPU',
    value: ((after.cpu_ms - before.cpu_ms) / (performance.now() - began)) * 100,
    unit: '% of a core',
    limit: 1,
  };
  const { own, shared } = memoryOf(platform.pid);
  const note = `own pages ${Math.round(own / 1_024)} MB; shared with every other service, as pages of the Node binary, ${Math.round(shared / 1_024)} MB`;
  yield { name: 'supervisor at rest: resident memory', value: after.rss_bytes / 1_048_576, unit: 'MB', limit: 90, note };
}

/** Fifty upgrades each, one after the other, under a load that is never still. */
export async function* fleetUpgradeRows(): AsyncIterable<Row> {
  await using platform = new SupervisedPlatform();
  await platform.start();
  let requests = 0;
  for (const service of UPGRADED) {
    const { row, asked } = await upgrades(platform, service, MANY_UPGRADES);
    requests += asked;
    yield row;
  }
  yield { name: 'requests under all of these upgrades', value: requests, unit: 'requests', atLeast: MANY_REQUESTS };
}

async function upgrades(platform: SupervisedPlatform, service: string, count: number): Promise<{ row: Row; asked: number }> {
  const { asked, failed } = await platform.under(['sys', 'bff', 'web'], async () => {
    for (let turn = 1; turn <= count; turn++) {
      await platform.upgrade(service);
      if (turn % PROGRESS === 0) process.stderr.write(`  ${service}: ${turn} upgrades\n`);
    }
  });
  const reasons = [...new Set(failed.map(({ host, why }) => `${host} ${why}`))].join(', ');
  const row = {
    name: `${service}: requests failed in ${count} rolling upgrades`,
    value: failed.length,
    unit: `of ${asked}`,
    limit: 0,
    ...(reasons ? { note: reasons } : {}),
  };
  return { row, asked };
}

async function* deaths(platform: SupervisedPlatform): AsyncIterable<Row> {
  const kill = async (): Promise<number> => {
    let killed = 0;
    const { failed } = await platform.under(['web'], async () => {
      const [instance] = await platform.instances('web');
      killed = Date.now();
      process.kill(instance?.pid ?? 0, 'SIGKILL');
      await delay(10_000);
    });
    return (Math.max(killed, ...failed.map(({ at }) => at)) - killed) / 1_000;
  };
  yield { name: 'SIGKILL of one instance of one: last failed request after', value: await kill(), unit: 's', limit: 4 };
  await platform.ask('POST', '/v1/captain/start-services', { service_types: ['web'] });
  while ((await platform.instances('web')).length < 2) await delay(100);
  yield { name: 'SIGKILL of one instance of two: last failed request after', value: await kill(), unit: 's', limit: 1 };
}
