import { expect, test } from 'vitest';
import { Problem } from '../../api/gateway/problem.ts';
import type { Bootstrap, Env } from '../../api/registry-api.ts';
import { featureEnabled, fetchEnv, settleMembership } from './gates.ts';

const bootstrap = (orgs: number) => ({ platform_admin: false, orgs: Array.from({ length: orgs }, () => ({})) }) as unknown as Bootstrap;
const problem = (status: number) => new Problem({ status, code: 'x', title: 'x', correlationId: '' });

function waits() {
  const slept: number[] = [];
  return { slept, sleep: async (ms: number) => void slept.push(ms) };
}

test('CON-017 membership settles across 0.5, 1, 2 and 4 seconds before it is denied', async () => {
  const { slept, sleep } = waits();
  expect((await settleMembership(async () => bootstrap(0), sleep)).kind).toBe('not_member');
  expect(slept).toEqual([500, 1000, 2000, 4000]);
});

test('CON-017 a membership that arrives late is found', async () => {
  const { slept, sleep } = waits();
  let asked = 0;
  expect((await settleMembership(async () => bootstrap(++asked > 2 ? 1 : 0), sleep)).kind).toBe('member');
  expect(slept).toEqual([500, 1000]);
});

test('CON-017 whoever may not even ask is no member, after the same waits; who follows an invitation waits for nothing', async () => {
  const refused = async () => {
    throw problem(403);
  };
  const patient = waits();
  expect((await settleMembership(refused, patient.sleep)).kind).toBe('not_member');
  const invited = waits();
  expect((await settleMembership(refused, invited.sleep, [])).kind).toBe('not_member');
  expect([patient.slept, invited.slept]).toEqual([[500, 1000, 2000, 4000], []]);
});

test('CON-020 a bootstrap that fails proves nothing and renders', async () => {
  const { sleep } = waits();
  expect(
    (
      await settleMembership(async () => {
        throw problem(503);
      }, sleep)
    ).kind,
  ).toBe('unknown');
});

test('CON-018 an environment is asked for three more times; a 404 blocks at once', async () => {
  const away = waits();
  expect(
    (
      await fetchEnv(async () => {
        throw problem(502);
      }, away.sleep)
    ).kind,
  ).toBe('unknown');
  expect(away.slept).toEqual([500, 1000, 2000]);
  const absent = waits();
  expect(
    (
      await fetchEnv(async () => {
        throw problem(404);
      }, absent.sleep)
    ).kind,
  ).toBe('absent');
  expect(absent.slept).toEqual([]);
  expect(await fetchEnv(async () => ({ env_id: 'e' }) as Env)).toMatchObject({ kind: 'found' });
});

test('CON-019 a service that the feature map does not name is enabled', () => {
  expect(featureEnabled({}, 'x')).toBe(true);
  expect(featureEnabled({ x: true }, 'x')).toBe(true);
  expect(featureEnabled({ x: false }, 'x')).toBe(false);
});
