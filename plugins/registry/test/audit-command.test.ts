import type { Operator } from '@platform/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import command from '../src/audit/audit-command.ts';
import { Trail } from './fixtures/trail.ts';
import { World } from './fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

/** Runs the command as the host does: a workload of the platform, over the wire. */
async function run(...args: string[]): Promise<{ code: number; lines: string[] }> {
  const lines: string[] = [];
  const operator: Operator = {
    call: async <T>(_: string, method: string, path: string, input: { query?: Readonly<Record<string, unknown>> } = {}) => {
      const query = new URLSearchParams(input.query as Record<string, string>);
      const { status, json, text } = await world.host.fetch(`${path}${query.size > 0 ? `?${query}` : ''}`, { method, persona: world.service('captain', 'audit:read') });
      if (status !== 200) throw new Error(`${status} ${text}`);
      return json as T;
    },
    print: line => void lines.push(line),
    progress: () => undefined,
  };
  return { code: await command.run(args, operator), lines };
}

test('REG-004 `platform audit verify` walks every environment, names the first bad row, and says so by its exit code', async () => {
  const [good, bad] = [new Trail(world), new Trail(world)];
  await good.record(2);
  const ids = await bad.record(3);
  expect(await run('verify')).toMatchObject({ code: 0, lines: [expect.stringContaining('ML-DSA-65'), expect.anything(), expect.anything(), '2 environments, 5 rows, nothing was changed'] });
  await bad.tamper(sql => sql`update audit set action = 'forged' where audit_id = ${ids[1]}`);
  const { code, lines } = await run('verify');
  expect(code).toBe(1);
  expect(lines.filter(line => line.startsWith('x '))).toEqual([`x ${bad.envId}  row 2 (${ids[1]}): Row 2 is not what was written. [row_changed]`]);
  expect(await run('verify', '--env', good.envId)).toMatchObject({ code: 0, lines: [expect.anything(), expect.stringContaining('intact to row 2'), '1 environment, 2 rows, nothing was changed'] });
  for (const args of [[], ['prove'], ['verify', '--env'], ['verify', '--all', 'x']]) expect((await run(...args)).code).toBe(64);
});
