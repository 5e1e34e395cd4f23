import type { ListingStatus, Role } from '../../contract/schema/listing.ts';
import type { Ctx, StoreTx } from '../context.ts';

/** Where a listing may go from where it is (G-APP-02). */
const WAYS: Readonly<Record<ListingStatus, readonly ListingStatus[]>> = {
  draft: ['published', 'archived'],
  published: ['deprecated'],
  deprecated: ['archived'],
  archived: [],
};

interface Content {
  readonly roles: readonly Role[];
  readonly default_signup_role: string | null;
}

/** What a listing must not say, whatever the schema allows. */
export class ListingRules {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  requireContent({ roles, default_signup_role: signup }: Content): void {
    if (signup !== null && !roles.some(({ name }) => name === signup))
      throw this.#ctx.problem('signup_role_undeclared', {
        detail: `Declare "${signup}" among roles, or choose one of: ${roles.map(({ name }) => name).join(', ') || '(none declared)'}.`,
        extra: { errors: [{ pointer: '/default_signup_role', code: 'undeclared', message: 'is none of the declared roles' }] },
      });
    const names = roles.map(({ name }) => name);
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined) throw this.#taken(twice, 'this listing itself');
    this.#requireGrantable(roles, signup);
  }

  requireWay(from: ListingStatus, to: ListingStatus): void {
    if (!WAYS[from].includes(to))
      throw this.#ctx.problem('listing_status_refused', {
        detail: `It is ${from}; from there it goes to ${WAYS[from].join(' or ') || 'nothing else'}.`,
      });
  }

  /** Of two applications in one environment each has its role names to itself; releases of one application share theirs (APP-063). */
  async requireFreeRoles(
    tx: StoreTx,
    { env_id, org_id, app_slug, roles }: { env_id: string; org_id: string; app_slug: string; roles: readonly Role[] },
  ): Promise<void> {
    await tx.sql`select pg_advisory_xact_lock(hashtextextended(${`app:roles:${env_id}`}, 0))`;
    const [clash] = await tx.sql<{ name: string; app_slug: string }[]>`
      select role ->> 'name' as name, app_slug from listings, jsonb_array_elements(roles) as role
      where env_id = ${env_id} and org_id = ${org_id} and app_slug <> ${app_slug}
        and role ->> 'name' = any(${roles.map(({ name }) => name)}::text[]) limit 1`;
    if (clash) throw this.#taken(clash.name, clash.app_slug);
  }

  /** What runs the platform itself is nobody's to hand on by a listing, and no sign-up role brings administration. */
  #requireGrantable(roles: readonly Role[], signup: string | null): void {
    const known = new Map(this.#ctx.catalog.actions().map(action => [action.scope, action]));
    for (const [index, { name, scopes }] of roles.entries()) {
      for (const scope of scopes) {
        const action = known.get(scope) ?? known.get(scope.replace(/^platform:/, ''));
        const reserved =
          action !== undefined &&
          (action.machineOnly || (action.vertical === 'platform' && action.admin && (action.grants === undefined || name === signup)));
        if (reserved)
          throw this.#ctx.problem('role_scope_refused', {
            detail: `${scope} is ${
              action.machineOnly ? 'for services alone' : 'administration of the platform'
            }; leave it out of the role "${name}".`,
            extra: { errors: [{ pointer: `/roles/${index}/scopes`, code: 'refused', message: `holds ${scope}` }] },
          });
      }
    }
  }

  #taken(name: string, by: string) {
    return this.#ctx.problem('role_name_taken', {
      detail: `"${name}" is a role of ${by}. Choose another name.`,
      extra: { errors: [{ pointer: '/roles', code: 'taken', message: `"${name}" is in use` }] },
    });
  }
}
