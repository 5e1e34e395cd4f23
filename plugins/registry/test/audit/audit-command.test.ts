import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Operator } from '@platform/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import command from '../../src/audit/audit-command.ts';
import { Trail } from '../fixtures/trail.ts';
import { World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

/** Runs the command as the host does: a workload of the platform, over the wire. */
async function run(at: World, ...args: string[]): Promise<{ code: number; lines: string[] }> {
  const lines: string[] = [];
  const operator: Operator = {
    call: async <T>(_: string, method: string, path: string, input: { query?: Readonly<Record<string, unknown>> } = {}) => {
      const query = new URLSearchParams(input.query as Record<string, string>);
      const { status, json, text } = await at.host.fetch(`${path}${query.size > 0 ? `?${query}` : ''}`, {
        method,
        persona: at.service('captain', 'audit:read'),
      });
      if (status !== 200) throw new Error(`${status} ${text}`);
      return json as T;
    },
    control: async () => undefined as never,
    print: line => void lines.push(line),
    progress: () => undefined,
  };
  return { code: await command.run(args, operator), lines };
}

test('REG-004 a receipt that was kept elsewhere proves that today’s chains go on from it, also where this machine’s own word is gone', async () => {
  await using elsewhere = await World.start();
  const file = (name: string) => join(elsewhere.stores.dataDir, name);
  const [kept, gone] = [new Trail(elsewhere), new Trail(elsewhere)];
  await kept.record(2);
  const putBack = await kept.backup();
  await kept.record(2);
  await gone.record(1);
  // Nothing was taken note of here yet.
  const verify = (...args: string[]) => run(elsewhere, 'verify', ...args);
  expect(await verify('--save', file('receipt'))).toMatchObject({ code: 0 });
  await expect(verify('--save', file('receipt'))).rejects.toThrow('EEXIST');
  await kept.record(1);
  expect(await verify('--since', file('receipt'))).toMatchObject({ code: 0 });
  // 1 An earlier state, from before anybody signed, and a chain that went on from it; another is gone.
  await putBack();
  await kept.record(5);
  await gone.vanish();
  expect(await verify()).toMatchObject({ code: 0 });
  const { code, lines } = await verify('--since', file('receipt'));
  expect(code).toBe(1);
  expect(lines.filter(line => line.startsWith('x ')).map(line => line.replace(/ \(.*\)/, ''))).toEqual(
    expect.arrayContaining([
      expect.stringMatching(`${kept.envId}  row 4: .*rolled_back`),
      expect.stringMatching(`${gone.envId}  row 1: .*rolled_back`),
    ]),
  );
  // 2 The receipt itself must be whole and as it was signed.
  const text = readFileSync(file('receipt'), 'utf8');
  for (const [name, changed] of [
    ['changed', text.replace(/"position":\d/, '"position":9')],
    ['cut', text.replace(/"next_cursor":null/, `"next_cursor":"${kept.envId}"`)],
    ['empty', ''],
    ['other', 'no receipt\n'],
  ] as const) {
    writeFileSync(file(name), changed);
    await expect(verify('--since', file(name))).rejects.toThrow(/as it was signed|not a whole receipt/);
  }
});

test('REG-004 `platform audit verify` walks every environment, names the first bad row, and says so by its exit code', async () => {
  const [good, bad] = [new Trail(world), new Trail(world)];
  await good.record(2);
  const ids = await bad.record(3);
  expect(await run(world, 'verify')).toMatchObject({
    code: 0,
    lines: [expect.stringContaining('ML-DSA-65'), expect.anything(), expect.anything(), '2 environments, 5 rows, nothing was changed'],
  });
  await bad.tamper(sql => sql`update audit set action = 'forged' where audit_id = ${ids[1]}`);
  const { code, lines } = await run(world, 'verify');
  expect(code).toBe(1);
  expect(lines.filter(line => line.startsWith('x '))).toEqual([
    `x ${bad.envId}  row 2 (${ids[1]}): Row 2 is not what was written. [row_changed]`,
  ]);
  expect(await run(world, 'verify', '--env', good.envId)).toMatchObject({
    code: 0,
    lines: [expect.anything(), expect.stringContaining('intact to row 2'), '1 environment, 2 rows, nothing was changed'],
  });
  for (const args of [[], ['prove'], ['verify', '--env'], ['verify', '--all', 'x'], ['verify', 'more']])
    expect((await run(world, ...args)).code).toBe(64);
});
