import type { DomainBinding } from '../../contract/schema/domain.ts';

/** A domain that an application asks for, as it is stored. */
export interface BindingRow extends Omit<DomainBinding, 'txt_name'> {
  readonly env_id: string;
  readonly org_id: string;
  readonly created_at: string;
}
