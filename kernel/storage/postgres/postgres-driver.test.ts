import { expect, test } from 'vitest';
import './postgres-driver.ts';

const part = async (name: string) => (await import(new URL(name, import.meta.resolve('postgres')).href)) as { readonly default: unknown };
interface Queue {
  readonly length: number;
  push(value: object): object;
  shift(): object | undefined;
  remove(value: object): object | null;
}

test('its list of idle connections stays as short as they are many, and keeps their order', async () => {
  const queue = ((await part('queue.js')).default as () => Queue)();
  expect(String(queue.shift)).toContain('xs.splice(0, 64)');
  const connections = Array.from({ length: 6 }, (_, id) => ({ id }));
  for (const connection of connections) queue.push(connection);
  // As a pool that is never busy with all of them: the first is taken, is not found where it was taken from, and goes to the end.
  const taken = Array.from({ length: 1_000 }, () => {
    const connection = queue.shift() as object;
    expect(queue.remove(connection)).toBeNull();
    queue.push(connection);
    return connection;
  });
  expect(taken).toEqual(Array.from({ length: 1_000 }, (_, turn) => connections[turn % 6]));
  expect(queue.length).toBe(6);
  // One from the middle is found, and no other moves.
  const [next] = [connections[1_000 % 6], connections[1_001 % 6]];
  expect(queue.remove(connections[1_001 % 6] as object)).toBe(connections[1_001 % 6]);
  expect(queue.shift()).toBe(next);
  expect(queue.length).toBe(4);
});
