import type { Ctx } from '../context.ts';

const PATTERN = /^[a-z][a-z0-9-]{1,38}[a-z0-9]$/;
/** Names of hosts and parts of the platform that are no services; those of its services are in the catalog. */
const RESERVED = ['ops', 'www', 'api', 'admin', 'secrets', 'db', 'ai', 'tls'];

/** Why a slug cannot be used at all, or null (G-K-03). */
export function slugFault(ctx: Ctx, slug: string): 'invalid' | 'reserved' | null {
  if (!PATTERN.test(slug)) return 'invalid';
  const isService = ctx.catalog.manifests().some(({ id, vertical }) => vertical === 'platform' && id === slug);
  return isService || RESERVED.includes(slug) ? 'reserved' : null;
}

/** Refuses a slug that breaks the rules, naming the rule. */
export function requireSlug(ctx: Ctx, slug: string): void {
  const fault = slugFault(ctx, slug);
  const errors = (message: string) => ({ errors: [{ pointer: '/slug', code: fault ?? '', message }] });
  if (fault === 'invalid')
    throw ctx.problem('slug_invalid', {
      detail: 'Use 3 to 40 characters of a-z, 0-9 and -, starting with a letter and ending with a letter or digit.',
      extra: errors('does not follow the rules'),
    });
  if (fault === 'reserved')
    throw ctx.problem('slug_reserved', { detail: `The platform uses "${slug}" itself.`, extra: errors('is reserved') });
}
