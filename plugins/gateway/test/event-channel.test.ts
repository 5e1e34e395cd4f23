import { expect, test } from 'vitest';
import { EventChannel } from '../src/live/event-channel.ts';
import { Listener } from '../src/live/live-hub.ts';

test('a bounded channel puts the gap where the loss was', async () => {
  const channel = new EventChannel(2);
  const note = (n: number) => channel.push({ kind: 'note', type: 'n', data: { n } });
  for (let n = 0; n < 5; n++) note(n);
  expect(await channel.next()).toMatchObject({ data: { n: 0 } });
  note(5);
  channel.close();
  channel.push({ kind: 'ping' });
  expect(await channel.next()).toBeUndefined();
  const other = new EventChannel(2);
  for (let n = 0; n < 3; n++) other.push({ kind: 'note', type: 'n', data: { n } });
  await other.next();
  other.push({ kind: 'note', type: 'n', data: { n: 3 } });
  expect([await other.next(), await other.next(), await other.next()]).toMatchObject([
    { data: { n: 1 } },
    { kind: 'lag', skipped: 1 },
    { data: { n: 3 } },
  ]);
});

test('GWY-100 the channel of a live connection holds 256 events, and then says how many it lost', async () => {
  const { channel } = new Listener({} as never, () => undefined);
  for (let n = 0; n < 300; n++) channel.push({ kind: 'note', type: 'n', data: { n } });
  for (let n = 0; n < 256; n++) expect(await channel.next()).toMatchObject({ data: { n } });
  channel.push({ kind: 'note', type: 'n', data: { n: 300 } });
  expect([await channel.next(), await channel.next()]).toMatchObject([{ kind: 'lag', skipped: 44 }, { data: { n: 300 } }]);
});
