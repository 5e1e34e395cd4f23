import type { LivingService, Logger } from '@platform/sdk';
import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { eventually } from '../../storage/fixtures/eventually.ts';
import { LiveCatalog } from './live-catalog.ts';

const service = (name: string, life: LivingService['life'] = 'enabled', version = '1'): LivingService => ({
  service: name,
  vertical: 'acme',
  label: name,
  version,
  life,
  since: '2026-01-01T00:00:00.000Z',
  stream_families: [],
});

/** A registry that says what the test puts there, and can be away. */
function registryOf(...services: LivingService[]) {
  const clock = new ManualClock();
  const logged: string[] = [];
  const write = (level: string) => (_: object, message: string) => void logged.push(`${level} ${message}`);
  const log: Logger = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  let word: (message: string) => void = () => undefined;
  let unsubscribed = 0;
  const registry = { services, away: false, asked: 0 };
  const catalog = new LiveCatalog({
    clock,
    log,
    kv: {
      subscribe: async (_, listener) => {
        word = listener;
        return { [Symbol.asyncDispose]: async () => void unsubscribed++ };
      },
    },
    read: async () => {
      registry.asked += 1;
      if (registry.away) throw new Error('away');
      return [...registry.services];
    },
  });
  return { catalog, clock, registry, log, logged, say: () => word(''), unsubscribed: () => unsubscribed };
}
const seen = (pictures: readonly (readonly LivingService[])[]) =>
  pictures.map(picture => picture.map(({ service: name, life, version }) => `${name} ${life} ${version}`).join(', '));

test('whoever reads gets what there is, then every change when the registry says so, and nothing where none was', async () => {
  const { catalog, registry, say } = registryOf(service('lending'));
  const pictures: (readonly LivingService[])[] = [];
  catalog.follow(picture => void pictures.push(picture));
  await eventually(() => seen(pictures)).toEqual(['lending enabled 1']);
  say();
  await eventually(() => registry.asked).toBe(2);
  registry.services = [service('lending', 'draining')];
  say();
  await eventually(() => seen(pictures)).toEqual(['lending enabled 1', 'lending draining 1']);
  registry.services = [service('lending', 'draining', '2')];
  say();
  await eventually(() => seen(pictures).at(-1)).toBe('lending draining 2');
  await catalog[Symbol.asyncDispose]();
});

test('a word that was lost is made good by a look every fifteen seconds; before the first answer it looks every second', async () => {
  const { catalog, clock, registry, logged } = registryOf(service('lending'));
  registry.away = true;
  const pictures: (readonly LivingService[])[] = [];
  catalog.follow(picture => void pictures.push(picture));
  await eventually(() => registry.asked).toBe(1);
  await clock.advance('1s');
  expect([registry.asked, pictures]).toEqual([2, []]);
  registry.away = false;
  await clock.advance('1s');
  await eventually(() => pictures.length).toBe(1);
  registry.services = [];
  await clock.advance('14s');
  expect([registry.asked, pictures.length]).toEqual([3, 1]);
  await clock.advance('1s');
  await eventually(() => seen(pictures)).toEqual(['lending enabled 1', '']);
  registry.away = true;
  await clock.advance('15s');
  expect([pictures.length, logged.filter(line => line.startsWith('warn')).length]).toEqual([2, 1]);
  await catalog[Symbol.asyncDispose]();
});

test('a slow reader gets the latest picture and not each, and what it failed at is given to it again', async () => {
  const { catalog, clock, registry, say, logged } = registryOf(service('one'));
  const pictures: (readonly LivingService[])[] = [];
  const busy = Promise.withResolvers<void>();
  let fails = false;
  catalog.follow(async picture => {
    if (fails) {
      fails = false;
      throw new Error('not now');
    }
    pictures.push(picture);
    await busy.promise;
  });
  await eventually(() => pictures.length).toBe(1);
  for (const name of ['two', 'three']) {
    registry.services = [service(name)];
    const asked = registry.asked;
    say();
    await eventually(() => registry.asked).toBe(asked + 1);
  }
  fails = true;
  busy.resolve();
  await eventually(() => logged.filter(line => line.includes('could not be followed')).length).toBe(1);
  expect(seen(pictures)).toEqual(['one enabled 1']);
  await clock.advance('15s');
  await eventually(() => seen(pictures)).toEqual(['one enabled 1', 'three enabled 1']);
  await catalog[Symbol.asyncDispose]();
});

test('a look that is under way when it ends is cut short, and nothing is said of it', async () => {
  const { clock, log, logged } = registryOf();
  const asked = Promise.withResolvers<AbortSignal>();
  const read = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
      asked.resolve(signal);
    });
  const kv = { subscribe: async () => ({ [Symbol.asyncDispose]: async () => undefined }) };
  const catalog = new LiveCatalog({ clock, log, kv, read });
  catalog.follow(() => undefined);
  await asked.promise;
  await catalog[Symbol.asyncDispose]();
  expect(logged).toEqual([]);
});

test('it begins with the first reader, and its end ends every reader and the subscription', async () => {
  const { catalog, registry, unsubscribed } = registryOf(service('one'));
  expect(registry.asked).toBe(0);
  const pictures: (readonly LivingService[])[] = [];
  const read = (async () => {
    for await (const picture of catalog.changes()) pictures.push(picture);
  })();
  await eventually(() => pictures.length).toBe(1);
  await catalog[Symbol.asyncDispose]();
  await read;
  expect(unsubscribed()).toBe(1);
});
