/** Whose data a call is about. */
export interface Target {
  readonly env?: string | undefined;
  readonly org?: string | undefined;
}

/** One of the two headers, never both: the environment wins. */
export function targetHeaders(target: Target | undefined): Record<string, string> {
  if (target?.env) return { 'X-BFF-Target-Env-Id': target.env };
  if (target?.org) return { 'X-BFF-Target-Org-Id': target.org };
  return {};
}

export function targetQuery(target: Target | undefined): Record<string, string> {
  if (target?.env) return { target_env_id: target.env };
  if (target?.org) return { target_org_id: target.org };
  return {};
}
