import { expect, test } from 'vitest';
import type { Bootstrap } from '../../api/registry-api.ts';
import { isElsewhere, needsEnvironment, placeOf } from './place.ts';
import { parseRoute } from './route.ts';

const env = (env_id: string, status = 'active') => ({ env_id, status });
const bootstrap = {
  orgs: [
    { org_id: 'root', envs: [env('ops')] },
    { org_id: 'mine', envs: [env('old', 'archived'), env('prod')] },
  ],
  system: { org_id: 'root', env_id: 'ops' },
} as unknown as Bootstrap;

test('the route says where the operator stands', () => {
  expect(placeOf(parseRoute('#/home?env=ops'), bootstrap, undefined)).toEqual({ org: 'root', env: 'ops' });
  expect(placeOf(parseRoute('#/home?org=mine'), bootstrap, { org: 'root', env: 'ops' })).toEqual({ org: 'mine', env: undefined });
});

test('else where the operator was, else the first environment that is not the platform’s', () => {
  expect(placeOf(parseRoute('#/orders'), bootstrap, { org: 'mine', env: 'prod' })).toEqual({ org: 'mine', env: 'prod' });
  expect(placeOf(parseRoute('#/'), bootstrap, undefined)).toEqual({ org: 'mine', env: 'prod' });
  expect(placeOf(parseRoute('#/'), undefined, undefined)).toEqual({ org: undefined, env: undefined });
});

test('F-55 at the level of an organization a page of an environment asks for one first; a page of the organization or of the platform does not', () => {
  const atOrg = { org: 'mine', env: undefined };
  const nav = [
    { label: 'Loans', page: 'loans', scope: 'env' },
    { label: 'Keys', page: 'keys' },
    { label: 'Limits', page: 'limits', scope: 'org' },
    { label: 'Nodes', page: 'nodes', scope: 'platform' },
  ];
  expect([...nav.map(({ page }) => page), 'unlisted'].map(page => needsEnvironment({ nav }, page, atOrg))).toEqual([
    true,
    true,
    false,
    false,
    true,
  ]);
  expect(needsEnvironment({ nav }, 'loans', { org: 'mine', env: 'prod' })).toBe(false);
});

test('F-57 a page of the platform is shown at the platform alone, a page of a tenant everywhere', () => {
  const nav = [
    { label: 'Certificates', page: 'certificates', scope: 'platform' },
    { label: 'Loans', page: 'loans', scope: 'env' },
  ];
  const system = { ...bootstrap, system: { org_id: 'root', env_id: 'ops' } } as Bootstrap;
  const at = (org: string | undefined, env: string | undefined) =>
    ['certificates', 'loans'].map(page => isElsewhere({ nav }, page, { org, env }, system));
  expect([at('mine', 'prod'), at('mine', undefined), at('root', 'ops'), at('root', undefined), at(undefined, undefined)]).toEqual([
    [true, false],
    [true, false],
    [false, false],
    [false, false],
    [false, false],
  ]);
});
