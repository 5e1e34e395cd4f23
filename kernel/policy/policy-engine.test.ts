import type { Caller } from '@platform/sdk';
import { beforeEach, describe, expect, test } from 'vitest';
import { PolicyStore } from '../test/policy-store.ts';
import { actionKey, canonicalScope, parseScopes } from '../identity/tokens/scope-name.ts';
import type { Identity } from '../identity/tokens/verifier.ts';
import { CedarSet, policyFaults, scopeMirror } from './cedar.ts';
import type { PolicySet } from './policy-data.ts';
import { PolicyEngine } from './policy-engine.ts';

const ENV = 'env-1';
const ACTIONS = ['probe:things:read', 'probe:things:write', 'probe:work:run', 'probe:person:ask', 'audit:read'];
const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const person = (id: string, ...scopes: string[]): Identity => ({
  principal: 'user',
  scopes: new Set(scopes),
  caller: { kind: 'user', userId: id, subject: id, envId: ENV } as Caller,
});
const workload = (name: string, ...scopes: string[]): Identity => ({
  principal: 'machine',
  scopes: new Set(scopes),
  caller: { kind: 'machine', subject: name } as Caller,
});

let store: PolicyStore;
let engine: PolicyEngine;
beforeEach(() => {
  store = new PolicyStore();
  engine = new PolicyEngine({
    service: 'probe',
    log,
    bootstrapEnvs: new Set(['boot']),
    load: async envId => store.stub.policySnapshot({ query: { service: 'probe', env_id: envId } }),
  });
});
const may = (identity: Identity, action: string, more: { envId?: string; resource?: { type: string; id: string } } = {}) =>
  engine.allows({ identity, action, envId: ENV, correlationId: 'c', ...more });
const forbid = (rule: string, mode: PolicySet['mode'] = 'enforced') => store.put({ env_id: ENV, mode, policies: rule });

/** A small generator with a seed: every run asks the same questions. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

test('the scope mirror of the engine decides as its Cedar text does, for any scopes of any principal', async () => {
  const set = new CedarSet({ ...store.put({ env_id: 'other', policies: scopeMirror(ACTIONS) }), origin: 'platform' }, { mirror: true });
  const random = numbers(7);
  for (let round = 0; round < 200; round++) {
    const scopes = ACTIONS.filter(() => random.next().value < 0.5);
    const action = ACTIONS[Math.floor(random.next().value * ACTIONS.length)] as string;
    const machine = random.next().value < 0.5;
    const identity = machine ? workload('w', ...scopes) : person('p', ...scopes);
    const cedar = set.evaluate({
      principal: machine ? { type: 'Workload', id: 'w' } : { type: 'User', id: 'p' },
      action,
      resource: 'service:probe',
      envId: ENV,
      scopes: new Set(scopes),
      relations: [],
      attributes: [],
    });
    expect([scopes, action, await may(identity, action)]).toEqual([scopes, action, cedar.permitted]);
    expect(cedar.errors).toEqual([]);
  }
});

test('scopes are spelt as G-K-08 allows, and no other way', () => {
  for (const [given, meant] of [
    ['platform:probe:things:read', 'probe:things:read'],
    ['platform:sys:audit:read', 'audit:read'],
    ['sys:audit:read', 'audit:read'],
    ['sys:tenants:read', 'tenants:read'],
    ['sys:read', 'sys:read'],
    ['sys:org:admin', 'sys:org:admin'],
    ['lab:probe:x', 'lab:probe:x'],
  ]) {
    expect([given, canonicalScope(given as string)]).toEqual([given, meant]);
  }
  expect(actionKey('lab', 'probe:things:read')).toBe('lab:probe:things:read');
  expect([...parseScopes(' platform:a:b  c:d ')]).toEqual(['a:b', 'c:d']);
  expect([...parseScopes(undefined)]).toEqual([]);
});

describe('a tenant’s set can only narrow', () => {
  test('whatever it permits, nobody may what no scope gives', async () => {
    forbid('permit(principal, action, resource);');
    expect(await may(person('p'), 'probe:things:read')).toBe(false);
    expect(await may(person('p', 'probe:things:read'), 'probe:things:write')).toBe(false);
  });

  test('for any mix of permits and forbids, what is allowed is among what the scopes allow', async () => {
    const random = numbers(11);
    const pick = () => ACTIONS[Math.floor(random.next().value * ACTIONS.length)] as string;
    for (let round = 0; round < 40; round++) {
      store.sets.length = 0;
      const rules = Array.from(
        { length: 3 },
        () => `${random.next().value < 0.5 ? 'permit' : 'forbid'}(principal, action == Action::"${pick()}", resource);`,
      );
      forbid(rules.join('\n'));
      await engine.reload(ENV);
      const scopes = ACTIONS.filter(() => random.next().value < 0.6);
      for (const action of ACTIONS) {
        const forbidden = rules.some(rule => rule.startsWith('forbid') && rule.includes(`"${action}"`));
        expect([rules, action, await may(person('p', ...scopes), action)]).toEqual([rules, action, scopes.includes(action) && !forbidden]);
      }
    }
  });

  test('a forbid names a person, a relation or an attribute', async () => {
    forbid(
      'forbid(principal == User::"mallory", action, resource);\nforbid(principal, action == Action::"probe:things:write", resource) when { principal.hasTag("team") && principal.getTag("team").contains("guests") };\nforbid(principal, action == Action::"probe:things:read", resource) when { resource.hasTag("blocked") && principal in resource.getTag("blocked") };',
    );
    store.attributes.push({ attribute_id: 'a', env_id: ENV, service: 'probe', principal: 'user:gus', key: 'team', value: ['guests'] });
    store.relations.push({ relation_id: 'r', env_id: ENV, service: 'probe', subject: 'user:bob', relation: 'blocked', object: 'thing:7' });
    expect(await may(person('mallory', ...ACTIONS), 'audit:read')).toBe(false);
    expect(await may(person('gus', ...ACTIONS), 'probe:things:write')).toBe(false);
    expect(await may(person('gus', ...ACTIONS), 'probe:things:read')).toBe(true);
    expect(await may(person('bob', ...ACTIONS), 'probe:things:read', { resource: { type: 'thing', id: '7' } })).toBe(false);
    expect(await may(person('bob', ...ACTIONS), 'probe:things:read', { resource: { type: 'thing', id: '8' } })).toBe(true);
  });

  test('two policies of one name both count, and none can take the ground’s', async () => {
    forbid(
      '@id("rule") forbid(principal, action == Action::"probe:things:read", resource);\n@id("rule") permit(principal, action, resource);\n@id("ground") permit(principal == User::"nobody", action, resource);',
    );
    expect(await may(person('p', ...ACTIONS), 'probe:things:read')).toBe(false);
    expect(await may(person('p', ...ACTIONS), 'probe:things:write')).toBe(true);
  });

  test('a forbid that fails while it is evaluated does not open the door', async () => {
    forbid('forbid(principal, action, resource) when { principal.getTag("absent").contains("x") };');
    expect(await may(person('p', ...ACTIONS), 'probe:things:read')).toBe(false);
  });

  test('sets of another environment do not count here', async () => {
    store.put({ env_id: 'another', mode: 'enforced', policies: 'forbid(principal, action, resource);' });
    expect(await may(person('p', ...ACTIONS), 'probe:things:read')).toBe(true);
    expect(await may(person('p', ...ACTIONS), 'probe:things:read', { envId: 'another' })).toBe(false);
  });
});

test('a shadow set never decides; what it would have denied is recorded', async () => {
  const set = forbid('@id("late") forbid(principal, action, resource);', 'shadow');
  await engine.require({ identity: person('p', ...ACTIONS), action: 'probe:things:read', envId: ENV, correlationId: 'c-7' });
  await new Promise(resolve => setImmediate(resolve));
  expect(engine.decisions()).toMatchObject([
    { mode: 'shadow', effect: 'deny', policy_set_id: set.policy_set_id, policy_id: 'late', principal: 'user:p', correlation_id: 'c-7' },
  ]);
});

test('a refusal names its decision, and the decision says why', async () => {
  const set = forbid('@id("no-writes") forbid(principal, action == Action::"probe:things:write", resource);');
  const refusal = await engine
    .require({ identity: person('p', ...ACTIONS), action: 'probe:things:write', envId: ENV, correlationId: 'c' })
    .catch((error: unknown) => error as { code: string; extra: { decision_id: string } });
  expect(refusal).toMatchObject({ code: 'policy_denied', status: 403 });
  expect(engine.decisions()[0]).toMatchObject({
    decision_id: (refusal as { extra: { decision_id: string } }).extra.decision_id,
    policy_set_id: set.policy_set_id,
    policy_id: 'no-writes',
    effect: 'deny',
  });
});

describe('while the registry is away', () => {
  test('an environment whose policies were never read is not decided, except to boot', async () => {
    store.away = true;
    await expect(
      engine.require({ identity: person('p', ...ACTIONS), action: 'probe:things:read', envId: ENV, correlationId: 'c' }),
    ).rejects.toMatchObject({ code: 'not_ready', status: 503 });
    expect(await may(person('p', ...ACTIONS), 'probe:things:read', { envId: 'boot' })).toBe(true);
    await expect(
      engine.require({ identity: person('p'), action: 'probe:things:read', envId: ENV, correlationId: 'c' }),
    ).rejects.toMatchObject({ code: 'policy_denied' });
  });

  test('what was read stays in force', async () => {
    forbid('forbid(principal, action == Action::"probe:things:write", resource);');
    expect(await may(person('p', ...ACTIONS), 'probe:things:write')).toBe(false);
    store.away = true;
    await engine.reloadAll();
    expect(await may(person('p', ...ACTIONS), 'probe:things:write')).toBe(false);
    expect(await may(person('p', ...ACTIONS), 'probe:things:read')).toBe(true);
  });
});

test('a policy that Cedar does not accept is described with its words and where', () => {
  expect(policyFaults('permit(principal, action == Action::"probe:things:read", resource);', ACTIONS)).toEqual([]);
  for (const text of [
    'permit(principal',
    'permit(principal, action == Action::"no:such:action", resource);',
    'permit(principal, action == Action::"probe:things:read", resource) when { principal.nothing };',
  ]) {
    const [fault] = policyFaults(text, ACTIONS);
    expect([text, fault?.pointer]).toEqual([text, '/policies']);
    expect(fault?.message.length).toBeGreaterThan(10);
  }
});
