/** `GET /auth/session`: who is signed in. There is no token in it. */
export interface Session {
  readonly user: { readonly user_id: string; readonly email: string; readonly display_name: string | null };
  readonly scopes: readonly string[];
  readonly org_id: string | null;
  readonly env_id: string | null;
  readonly csrf_token: string;
  readonly expires_at: string;
}
