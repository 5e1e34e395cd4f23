import type { Attribute, PolicySet, PolicySnapshot, Relation } from './policy-data.ts';

/** Where policy data is stored: the registry, behind these calls (C27). Every service's administration is a facade over them. */
export interface PolicyPort {
  snapshot(service: string, envId: string): Promise<PolicySnapshot>;
  upsertSet(row: {
    env_id: string;
    service: string;
    name: string;
    policies: string;
    policy_set_id?: string;
    mode?: PolicySet['mode'];
    updated_by: string /** Versions of which the set must be one (G-K-03). */;
    if_match?: readonly number[];
  }): Promise<PolicySet>;
  upsertRelation(row: Omit<Relation, 'relation_id'>): Promise<Relation>;
  upsertAttribute(row: Omit<Attribute, 'attribute_id'>): Promise<Attribute>;
  /** Several attributes of one principal at once, all or none; `null` takes one away. @returns all it had before and has after */
  putAttributes(row: Pick<Attribute, 'env_id' | 'service' | 'principal'> & { values: AttributeValues }): Promise<AttributeChange>;
  remove(row: { kind: PolicyKind; env_id: string; service: string; id: string; updated_by: string }): Promise<void>;
}

type AttributeValues = Readonly<Record<string, Attribute['value'] | null>>;
export interface AttributeChange {
  readonly before: Readonly<Record<string, Attribute['value']>>;
  readonly after: Readonly<Record<string, Attribute['value']>>;
}
export type PolicyKind = 'policy-sets' | 'relations' | 'attributes';

/** Routes of the registry that carry the port; hidden from its interface description. */
export const POLICY_ROUTES = {
  snapshot: { method: 'GET', path: '/v1/internal/policy' },
  upsertSet: { method: 'POST', path: '/v1/internal/policy/sets' },
  upsertRelation: { method: 'POST', path: '/v1/internal/policy/relations' },
  upsertAttribute: { method: 'POST', path: '/v1/internal/policy/attributes' },
  putAttributes: { method: 'PUT', path: '/v1/internal/policy/attributes' },
  remove: { method: 'POST', path: '/v1/internal/policy/remove' },
} as const;
