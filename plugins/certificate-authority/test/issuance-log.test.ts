import { appendFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { IssuanceLog, type LogEntry } from '../src/record/issuance-log.ts';

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'platform-issued-'));
});
afterAll(() => rm(home, { recursive: true, force: true }));

const keys = { sign: async () => ({ key_id: 'k', signature: 's' }) } as never;
const open = async (at: string) => {
  const log = new IssuanceLog(at, { keys, now: () => new Date(0), log: { error: () => undefined } as never });
  await log.open();
  return log;
};
const facts = (n: number) => ({ event: 'issued', serial: String(n), names: ['x'.repeat(4_000)] }) as never;

test('a log that is longer than what is read of it at once goes on after its last whole line', async () => {
  const path = join(home, 'issued', 'log.jsonl');
  {
    await using log = await open(join(home, 'issued'));
    for (let n = 0; n < 40; n++) await log.add(facts(n));
  }
  await appendFile(path, `{"half":"${'y'.repeat(70_000)}`);
  {
    await using log = await open(join(home, 'issued'));
    expect(log.seq).toBe(40);
    await log.add(facts(40));
  }
  const lines = (await readFile(path, 'utf8'))
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as LogEntry);
  expect(lines.map(({ seq }) => seq)).toEqual(Array.from({ length: 41 }, (_, n) => n + 1));
  expect(lines[40]?.prev).toBe(lines[39]?.hash);
});

test('a log that is there and cannot be read stops the start: begun anew, it would fork its chain', async () => {
  const other = join(home, 'other');
  await mkdir(join(other, 'log.jsonl'), { recursive: true });
  await expect(open(other)).rejects.toThrow('EISDIR');
});
