import type { Attribute, PolicySet, PolicySnapshot, Relation } from './policy-data.ts';

/** In whose name a row is written (`user:{id}` or `workload:{name}`), and who acts for that person: the registry's trail says so. */
export interface PolicyWriter {
  readonly updated_by: string;
  readonly act?: string;
}

/** Where policy data is stored: the registry, behind these calls (C27). Every service's administration is a facade over them. */
export interface PolicyPort {
  snapshot(service: string, envId: string): Promise<PolicySnapshot>;
  upsertSet(row: NewPolicySet & PolicyWriter): Promise<PolicySet>;
  upsertRelation(row: Omit<Relation, 'relation_id'> & PolicyWriter): Promise<Relation>;
  upsertAttribute(row: Omit<Attribute, 'attribute_id'> & PolicyWriter): Promise<Attribute>;
  /** Several attributes of one principal at once, all or none; `null` takes one away. @returns all it had before and has after */
  putAttributes(
    row: Pick<Attribute, 'env_id' | 'service' | 'principal'> & { values: AttributeValues } & PolicyWriter,
  ): Promise<AttributeChange>;
  remove(
    row: { kind: PolicyKind; env_id: string; service: string; id: string; if_match?: readonly number[] } & PolicyWriter,
  ): Promise<void>;
}

interface NewPolicySet {
  readonly env_id: string;
  readonly service: string;
  readonly name: string;
  readonly policies: string;
  readonly policy_set_id?: string;
  readonly mode?: PolicySet['mode'];
  /** Versions of which the set must be one (G-K-03). */
  readonly if_match?: readonly number[];
}
type AttributeValues = Readonly<Record<string, Attribute['value'] | null>>;
export interface AttributeChange {
  readonly before: Readonly<Record<string, Attribute['value']>>;
  readonly after: Readonly<Record<string, Attribute['value']>>;
}
export type PolicyKind = 'policy-sets' | 'relations' | 'attributes';
