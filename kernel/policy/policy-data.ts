/** Policy administration data, as the registry stores it and every service evaluates it (G-K-10). */
export interface PolicySet {
  policy_set_id: string;
  env_id: string;
  service: string;
  name: string;
  origin: 'platform' | 'tenant';
  mode: 'shadow' | 'enforced';
  version: number;
  policies: string;
  created_at: string;
  updated_at: string;
  updated_by: string;
}
export interface Relation {
  relation_id: string;
  env_id: string;
  service: string;
  subject: string;
  relation: string;
  object: string;
}
export interface Attribute {
  attribute_id: string;
  env_id: string;
  service: string;
  principal: string;
  key: string;
  value: string | number | boolean | readonly (string | number | boolean)[];
}
export interface PolicySnapshot {
  readonly sets: readonly PolicySet[];
  readonly relations: readonly Relation[];
  readonly attributes: readonly Attribute[];
}
export interface Decision {
  decision_id: string;
  at: string;
  env_id: string;
  service: string;
  principal: string;
  action: string;
  resource?: string;
  effect: 'permit' | 'deny';
  mode: 'shadow' | 'enforced';
  policy_set_id?: string;
  policy_id?: string;
  correlation_id: string;
}

export const EMPTY_SNAPSHOT: PolicySnapshot = { sets: [], relations: [], attributes: [] };
