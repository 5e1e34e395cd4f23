import { expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import type { StreamEntry } from './consumer-bus.ts';
import { Leaseholder } from './leaseholder.ts';

test('what is acknowledged right after the bus answered is told as well, and not with the next one', async () => {
  const told: string[] = [];
  const answer = Promise.resolve({});
  const bus = {
    ack: ({ message_ids }: { message_ids: string[] }) => {
      told.push(...message_ids);
      return answer;
    },
  };
  using holder = new Leaseholder({ bus: bus as never, log: {} as never, clock: systemClock, name: 'n', group: 'g', consumer: 'c' });
  const entry = (message_id: string) => ({ env_id: 'e', family: 'f', event_type: 't', message_id }) as unknown as StreamEntry;
  // At every turn in which the first call may be just over.
  for (let turns = 0; turns < 12; turns++) {
    const first = holder.ack(entry(`${turns}-a`));
    for (let turn = 0; turn < turns; turn++) await undefined;
    const second = holder.ack(entry(`${turns}-b`));
    await Promise.all([first, second]);
    expect(told.splice(0)).toEqual([`${turns}-a`, `${turns}-b`]);
  }
});
