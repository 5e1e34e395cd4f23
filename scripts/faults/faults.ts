import { setTimeout as delay } from 'node:timers/promises';
import type { FaultStack } from './fault-stack.ts';
import type { History } from './history/history.ts';
import type { Seeded } from '@platform/kernel/test/seeded';

/** Makes a fault and heals it. */
export type Fault = (stack: FaultStack, seeded: Seeded, history: History) => Promise<void>;

const paused = async (pause: (stopped: boolean) => void, ms: number): Promise<void> => {
  pause(true);
  try {
    await delay(ms);
  } finally {
    pause(false);
  }
};

export const FAULTS: Readonly<Record<string, Fault>> = {
  'kill bus': async ({ buses }, seeded) => {
    const bus = seeded.pick(buses);
    await bus.kill();
    await delay(seeded.between(0, 300));
    await bus.start();
  },
  'kill both buses': async ({ buses }) => {
    await Promise.all(buses.map(bus => bus.kill()));
    await Promise.all(buses.map(bus => bus.start()));
  },
  'pause bus': async ({ buses }, seeded) => {
    const bus = seeded.pick(buses);
    await paused(stopped => bus.pause(stopped), seeded.between(100, 3_000));
  },
  'kill store': async ({ valkey }, _, history) => {
    history.storeDied = true;
    await killStore(valkey);
  },
  'pause store': async ({ valkey }, seeded) => {
    const { pid } = valkey;
    await paused(stopped => process.kill(pid, stopped ? 'SIGSTOP' : 'SIGCONT'), seeded.between(100, 3_000));
  },
  'kill database': stack => stack.killPostgres(),
  'kill relay': async ({ shop }, seeded) => {
    await shop.kill();
    await delay(seeded.between(0, 200));
    await shop.start();
  },
  'pause relay': async ({ shop }, seeded) => paused(stopped => shop.pause(stopped), seeded.between(100, 2_000)),
  'cut answers': async ({ proxies }, seeded) => {
    for (const proxy of proxies) proxy.cut(() => seeded.between(1, 6_000));
    await delay(seeded.between(200, 1_500));
    for (const proxy of proxies) proxy.cut();
  },
  'kill bus and store': async ({ buses, valkey }, seeded, history) => {
    history.storeDied = true;
    const bus = seeded.pick(buses);
    await Promise.all([bus.kill(), killStore(valkey)]);
    await bus.start();
  },
  'kill database and store': async (stack, _, history) => {
    history.storeDied = true;
    await Promise.all([stack.killPostgres(), killStore(stack.valkey)]);
  },
};

/** Needs a stack on a small disk. Both databases write there; the database may end itself when it can write no more. */
export const FILL_DISK = 'fill disk';
export const fillDisk: Fault = async (stack, seeded, history) => {
  // A store that cannot save keeps what it has in memory, and loses it when it ends.
  history.storeDied = true;
  {
    using _ = stack.disk?.fill();
    await delay(seeded.between(200, 2_000));
  }
  await delay(200);
  await stack.revivePostgres();
};

async function killStore(valkey: FaultStack['valkey']): Promise<void> {
  const { restarts, pid } = valkey;
  process.kill(pid, 'SIGKILL');
  while (valkey.restarts === restarts || valkey.pid === pid) await delay(20);
}
