/** Claims of the three token types (G-K-07), as they are after their types were checked. */
export interface TokenClaims {
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
  /** Names the grant a token came from; ended, it ends the tokens that came from it. */
  readonly gid?: string;
  readonly act?: { readonly sub: string; readonly client_id?: string };
  readonly cnf?: { readonly 'x5t#S256'?: string; readonly jkt?: string };
}

/** The public half of a signing key, with the one algorithm it signs by. */
export interface VerificationKey {
  readonly key: import('node:crypto').KeyObject;
  readonly alg: string;
}

/** A request that shows a token which is bound to a key (RFC 9449 7.1). */
export interface Possession {
  /** The `DPoP` header as it came. */
  readonly proof: string | undefined;
  readonly method: string;
  /** The address as the client saw it; several where more than one name leads here. */
  readonly urls: readonly string[];
  readonly token: string;
  /** `cnf.jkt` of the token. */
  readonly jkt: string;
}

/** Checks of tokens: the same for the gate of every service and for the service that issues them. */
export interface TokenChecks {
  /**
   * Claims of a signed access token of this platform (RFC 7515, RFC 9068). Time, issuer, binding and revocation are the caller's. Throws
   * `unauthenticated`.
   */
  claims(token: string, find: (kid: string) => VerificationKey | undefined | Promise<VerificationKey | undefined>): Promise<TokenClaims>;
  /** Throws `unauthenticated` with the challenge `DPoP` unless the proof holds and nobody has shown it before. */
  possession(shown: Possession): Promise<void>;
}
