export interface Person {
  readonly user_id: string;
  readonly env_id: string;
  readonly email: string;
  readonly email_verified: boolean;
  readonly display_name: string | null;
  readonly status: 'active' | 'locked' | 'disabled';
  readonly must_change_password: boolean;
  readonly created_at: string;
  readonly last_sign_in_at: string | null;
  /** Of the page last used, or as a directory says; nothing before either. */
  readonly locale: string | null;
}

/** What the protocol asks of a person. */
export type Account = Pick<Person, 'user_id' | 'env_id' | 'email' | 'email_verified' | 'display_name' | 'status'>;

/** A person with what the password is checked against. */
export interface PersonWithPassword extends Person {
  readonly hash: string | null;
  /** Since when the password is this one, to the microsecond. The hash of the same password may be another by now. */
  readonly password_since: string | null;
  /** Whether an authenticator app is set up, and how many recovery codes are left. */
  readonly mfa_enrolled: boolean;
  readonly recovery_codes_left: number;
}
