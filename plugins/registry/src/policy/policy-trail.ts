import { createHash } from 'node:crypto';
import type { Caller } from '@platform/sdk';
import type { Actor } from '../../contract/schema/audit.ts';
import type { Attribute, PolicySet, Relation } from '../../contract/schema/policy.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { RegistryTx } from '../context.ts';

/** A write as the service sent it that administers the policies. */
export interface PolicyWrite {
  readonly caller: Caller & { readonly service: string };
  readonly correlationId: string;
  readonly body: { readonly env_id: string; readonly service: string; readonly updated_by?: string; readonly act?: string };
}
type Value = Attribute['value'];

/**
 * The audit entries of changed policies, in the transaction of the change (REG-004). They name what changed and say what it was and became;
 * texts and values may be long or personal and nobody can take them out of the trail again, so of those a digest stands there.
 */
export class PolicyTrail {
  readonly #audit: AuditTrail;

  constructor(audit: AuditTrail) {
    this.#audit = audit;
  }

  set(tx: RegistryTx, write: PolicyWrite, was: PolicySet | undefined, is: PolicySet | undefined): Promise<void> {
    const step = !was ? 'created' : is ? 'replaced' : 'removed';
    const id = (is ?? was)?.policy_set_id as string;
    return this.#write(tx, write, `policy.set.${step}`, id, { ...(was ? { from: shown(was) } : {}), ...(is ? { to: shown(is) } : {}) });
  }

  relation(tx: RegistryTx, write: PolicyWrite, step: 'added' | 'removed', row: Relation): Promise<void> {
    const { relation_id: id, subject, relation, object } = row;
    return this.#write(tx, write, `policy.relation.${step}`, id, { subject, relation, object });
  }

  /** Nothing where the value is what it was. */
  async attribute(
    tx: RegistryTx,
    write: PolicyWrite,
    { attribute_id: id, principal, key }: Attribute,
    { was, is }: { was?: Value | undefined; is?: Value },
  ): Promise<void> {
    const [from, to] = [was, is].map(value => (value === undefined ? undefined : digest(JSON.stringify(value))));
    if (from === to) return;
    const change = { ...(from ? { from } : {}), ...(to ? { to } : {}) };
    await this.#write(tx, write, `policy.attribute.${to ? 'set' : 'removed'}`, id, { principal, key, ...change });
  }

  #write(tx: RegistryTx, write: PolicyWrite, action: string, id: string, details: object): Promise<void> {
    const { caller, correlationId, body } = write;
    const type = action.slice(0, action.lastIndexOf('.')).replace('.', '_');
    return this.#audit.write(tx, {
      action,
      envId: body.env_id,
      // The certificate says which service wrote, and that service in whose name (REG-058).
      service: caller.service,
      actor: actorOf(write),
      caller,
      correlationId,
      resource: { type, id },
      details: { service: body.service, ...details },
    });
  }
}

function actorOf({ caller, body: { updated_by: by = '', act } }: PolicyWrite): Actor {
  const [, kind, id] = /^(user|workload):(.+)$/.exec(by) ?? [];
  if (!id) return { kind: 'workload', id: caller.subject };
  return { kind: kind as Actor['kind'], id, ...(act ? { act } : {}) };
}

const shown = ({ name, version, mode, policies }: PolicySet) => ({
  name,
  version,
  mode,
  length: policies.length,
  digest: digest(policies),
});
const digest = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`;
