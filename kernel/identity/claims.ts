/** Claims of the three token types (G-K-07). */
export interface Claims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: string | readonly string[];
  readonly exp: number;
  readonly iat: number;
  readonly nbf?: number;
  readonly jti: string;
  readonly client_id: string;
  readonly scope?: string;
  readonly token_type: 'access' | 'm2m' | 'delegated';
  readonly env_id?: string;
  readonly auth_env?: string;
  readonly app_instance_id?: string;
  readonly sid?: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly vertical?: string;
  /** Issued to an application that is not the tenant's own: good for its `scope` and no more. */
  readonly limited?: boolean;
  /** Names the grant of a person to such an application; taken back, it ends the tokens that came from it. */
  readonly gid?: string;
  readonly act?: { readonly sub: string; readonly client_id?: string };
  readonly cnf?: { readonly 'x5t#S256'?: string; readonly jkt?: string };
}
