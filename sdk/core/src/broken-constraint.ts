/** Name of the unique constraint that a failed write broke; undefined when it failed for another reason. */
export function brokenConstraint(error: unknown): string | undefined {
  const { code, constraint_name: name } = (error ?? {}) as { code?: string; constraint_name?: string };
  return code === '23505' ? name : undefined;
}
