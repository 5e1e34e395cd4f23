import type { registry } from '@platform/registry/contract';
import { as, boot, type BootedHost } from '@platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { lending } from '../../../e2e/verticals/lending/contract/index.ts';
import plugin from '../../../e2e/verticals/lending/src/plugin.ts';
import { newId } from '../../base/ids.ts';

let host: BootedHost<typeof lending>;
beforeAll(async () => {
  host = await boot<typeof lending, { registry: typeof registry }>(plugin, {});
});
afterAll(() => host?.[Symbol.asyncDispose]());

const sys = as.machine('sys');
const ask = (what: string, env_ids: readonly string[], persona = sys) =>
  host.fetch(`/v1/internal/environments/${what}`, { method: 'POST', persona, body: JSON.stringify({ env_ids }) });

test('F-56 a service says what it holds of an environment, and all of it goes when asked, and nothing of another', async () => {
  const [kept, gone] = [newId(), newId()];
  const sql = await host.sql();
  await sql`insert into loans (loan_id, env_id, applicant, amount_minor) select gen_random_uuid(), env_id::uuid, 'Grace', 5 from unnest(${[kept, ...Array.from({ length: 12_000 }, () => gone)]}::text[]) env_id`;
  expect((await ask('counts', [gone])).json).toEqual({ counts: { loans: 12_000 } });
  expect(await ask('purge', [gone])).toMatchObject({ status: 200, json: { counts: { loans: 12_000 } } });
  expect(await ask('purge', [gone])).toMatchObject({ status: 200, json: { counts: {} } });
  expect((await ask('counts', [kept, gone])).json).toEqual({ counts: { loans: 1 } });
});

test('nobody but a service of the platform asks, and no environment is not all of them', async () => {
  const env = newId();
  expect(await ask('purge', [env], { ...as.machine('shop'), vertical: 'acme' })).toMatchObject({ status: 403 });
  expect(await ask('purge', [env], as.user('lending:read', 'sys:sys:admin'))).toMatchObject({ status: 403 });
  expect((await host.fetch('/v1/internal/environments/purge', { method: 'POST', body: '{}' })).status).toBe(401);
  expect(await ask('purge', [])).toMatchObject({ status: 400, json: { code: 'validation_failed' } });
});
