import type { Account } from 'oidc-provider';
import type { Account as PersonAccount } from '../people/person.ts';

/** A person as the library knows one, with all that is known of them. */
export interface FoundAccount extends Account {
  readonly person: PersonAccount;
}
