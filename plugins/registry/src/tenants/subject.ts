import type { Env, Org } from '../../contract/schema/tenant.ts';

/** An organization or an environment, for what is done to both alike. */
export interface Subject {
  readonly kind: 'org' | 'env';
  readonly id: string;
  readonly orgId: string;
  /** Its slug, for people who read of it when the record is gone. */
  readonly name: string;
}

export const orgSubject = ({ org_id, slug }: Pick<Org, 'org_id' | 'slug'>): Subject => ({
  kind: 'org',
  id: org_id,
  orgId: org_id,
  name: slug,
});
export const envSubject = ({ env_id, org_id, slug }: Pick<Env, 'env_id' | 'org_id' | 'slug'>): Subject => ({
  kind: 'env',
  id: env_id,
  orgId: org_id,
  name: slug,
});
