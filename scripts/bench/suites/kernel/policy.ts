import { newId } from '../../../../kernel/base/ids.ts';
import type { Identity } from '../../../../kernel/identity/tokens/verifier.ts';
import type { PolicySet } from '../../../../kernel/policy/policy-data.ts';
import { PolicyEngine } from '../../../../kernel/policy/policy-engine.ts';
import { microseconds, type Row } from '../../row.ts';

const ENV = newId();
const ACTIONS = Array.from({ length: 80 }, (_, index) => `sample:thing${index}:read`);
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

function tenantSet(): PolicySet {
  const forbids = ACTIONS.slice(0, 20).map(
    (action, index) =>
      `forbid(principal, action == Action::"${action}", resource) when { principal.hasTag("dept") && principal.getTag("dept").contains("d${index}") };`,
  );
  return {
    policy_set_id: newId(),
    env_id: ENV,
    service: 'sample',
    name: 'departments',
    origin: 'tenant',
    mode: 'enforced',
    version: 1,
    policies: forbids.join('\n'),
    created_at: '',
    updated_at: '',
    updated_by: '',
  };
}

/** A decision by scope mirror, and one that also asks a tenant's Cedar set of twenty policies. */
export async function* policyRows(): AsyncGenerator<Row> {
  const identity = {
    principal: 'user',
    scopes: new Set(ACTIONS.slice(0, 25)),
    caller: { kind: 'user', userId: 'u', subject: 'u' },
  } as unknown as Identity;
  const engine = (sets: PolicySet[]) =>
    new PolicyEngine({
      service: 'sample',
      log: silent,
      load: async () => ({ sets, relations: [], attributes: [] }),
      bootstrapEnvs: new Set(),
    });
  const question = { identity, action: ACTIONS[3] as string, envId: ENV, correlationId: 'bench' };
  const [mirror, full] = [engine([]), engine([tenantSet()])];
  await mirror.require(question);
  await full.require(question);
  const mirrored = await microseconds(20_000, () => mirror.require(question));
  const cedar = await microseconds(1_000, () => full.require(question));
  yield* [
    { name: 'policy decision, scope mirror', value: mirrored, unit: 'µs', limit: 2, peer: { name: 'Cedar slice', value: cedar } },
    { name: 'policy decision, Cedar slice of a 20-policy tenant set', value: cedar, unit: 'µs', limit: 60 },
  ];
}
