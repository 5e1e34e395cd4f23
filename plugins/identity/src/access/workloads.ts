import { isDeepStrictEqual } from 'node:util';
import { type LivingService, type Manifest, type RequestOf, SYSTEM } from '@platform/sdk';
import { bumpAccess, bumpEveryRealm } from './access-version.ts';
import type { Contract, Ctx } from '../context.ts';
import { canonicalScope } from './scope-name.ts';

/** Who holds these can make anybody anything. */
const NEVER_GRANTED = new Set(['auth:membership:write', 'acme:clientcert:issue', 'sys:invitations:join', 'scim:read', 'scim:write']);

export interface WorkloadGrant {
  readonly name: string;
  readonly vertical: string;
  readonly scopes: readonly string[];
}

interface Grant {
  readonly scope: string;
  readonly grants: string;
}
const grantName = ({ scope, grants }: Grant): string => `${scope} with ${grants}`;

/**
 * Workloads and what they may do: platform ones from their contracts, those of verticals as the host registered them (day-one, Plugins).
 */
export class Workloads {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async get({ params }: RequestOf<Contract, 'getWorkload'>) {
    const found = await this.find(params.name);
    if (!found) throw this.#ctx.problem('workload_not_found', { detail: `No workload ${params.name} is registered.` });
    return { ...found, scopes: [...found.scopes] };
  }

  async put({ params, body, caller }: RequestOf<Contract, 'putWorkload'>) {
    const [service = ''] = params.name.split('-');
    // A caller's own service is its name up to the first hyphen: nobody may be called like a part of the platform (G-K-09).
    if (body.vertical === 'platform' || this.#manifests().some(({ id }) => id === service))
      throw this.#ctx.problem('workload_reserved', { detail: `${params.name} would speak for the platform.` });
    const scopes = [...new Set(body.scopes.map(canonicalScope))];
    const beyond = scopes.find(scope => NEVER_GRANTED.has(scope));
    if (beyond) throw this.#ctx.problem('workload_reserved', { detail: `${beyond} is not for workloads of verticals.` });
    const row = { name: params.name, vertical: body.vertical, scopes };
    await this.#ctx.db.tx(async tx => {
      const { sql } = tx;
      const [from] = await sql<Omit<WorkloadGrant, 'name'>[]>`select vertical, scopes from workloads where name = ${row.name} for update`;
      await sql`insert into workloads (name, vertical, scopes) values (${row.name}, ${row.vertical}, ${row.scopes}::text[])
      on conflict (name) do update set vertical = excluded.vertical, scopes = excluded.scopes, updated_at = now()`;
      const to = { vertical: row.vertical, scopes };
      // Every start of a host says it again.
      if (from && isDeepStrictEqual({ ...from }, to)) return;
      const resource = { type: 'workload', id: row.name };
      await tx.audit({
        action: 'auth.workload.registered',
        envId: SYSTEM.envId,
        caller,
        resource,
        details: { ...(from ? { from } : {}), to },
      });
    });
    await bumpAccess(this.#ctx, [SYSTEM.envId]);
    return row;
  }

  async putGrants({ params, body, caller }: RequestOf<Contract, 'putGrants'>) {
    const foreign = body.scopes.find(({ scope }) => !scope.startsWith(`${params.vertical}:`));
    if (params.vertical === 'platform' || foreign)
      throw this.#ctx.problem('scope_foreign', { detail: `${foreign?.scope ?? 'platform'} is not a vertical's own scope.` });
    const envs = await this.#ctx.db.tx(async tx => {
      const before = await tx.sql<Grant[]>`delete from vertical_grants where vertical = ${params.vertical} returning scope, grants`;
      for (const { scope, grants } of body.scopes)
        await tx.sql`insert into vertical_grants ${tx.sql.row({ vertical: params.vertical, scope, grants })} on conflict do nothing`;
      const [from, to] = [before, body.scopes].map(grants => [...new Set(grants.map(grantName))].sort());
      const resource = { type: 'vertical', id: params.vertical };
      if (!isDeepStrictEqual(from, to))
        await tx.audit({ action: 'auth.grants.replaced', envId: SYSTEM.envId, caller, resource, details: { from, to } });
      return tx.sql<{ env_id: string }[]>`select env_id from realms`;
    });
    await bumpAccess(
      this.#ctx,
      envs.map(({ env_id }) => env_id),
    );
    return { vertical: params.vertical, scopes: body.scopes.length };
  }

  /** Takes back what services that are gone may do, and what they gave to roles (G-K-09). */
  async forget(services: readonly LivingService[]): Promise<void> {
    const gone = services.filter(({ life }) => life === 'gone');
    if (gone.length === 0) return;
    const [names, verticals, times] = [gone.map(each => each.service), gone.map(each => each.vertical), gone.map(each => each.since)];
    const { sql } = this.#ctx.db;
    const forgotten = await sql<{ name: string }[]>`
      with gone as (
        select * from unnest(${names}::text[], ${verticals}::text[], ${times}::timestamptz[]) as g (service, vertical, since)),
      grants as (
        delete from vertical_grants v using gone where v.vertical = gone.vertical and v.updated_at < gone.since
          and split_part(v.scope, ':', 2) = gone.service returning v.scope as name),
      workers as (
        delete from workloads w using gone where w.vertical = gone.vertical and w.updated_at < gone.since
          and split_part(w.name, '-', 1) = gone.service returning w.name)
      select name from grants union all select name from workers`;
    if (forgotten.length === 0) return;
    this.#ctx.log.info({ forgotten: forgotten.map(({ name }) => name) }, 'workloads and grants of services that are gone were taken back');
    await bumpEveryRealm(this.#ctx);
  }

  async find(name: string): Promise<WorkloadGrant | undefined> {
    for (const { id, vertical, uses, workloads } of this.#manifests()) {
      if (name === id) return { name, vertical, scopes: [...this.#scopesOf(uses), ...this.#offeredTo(name)] };
      for (const [extra, needs] of Object.entries(workloads))
        if (name === `${id}-${extra}`) return { name, vertical, scopes: this.#scopesOf(needs) };
    }
    const [row] = await this.#ctx.db.sql<WorkloadGrant[]>`select name, vertical, scopes from workloads where name = ${name}`;
    return row;
  }

  #manifests(): readonly Manifest[] {
    return this.#ctx.catalog.manifests().filter(({ vertical }) => vertical === 'platform');
  }

  /** What services of the platform give to those that call them without naming them. */
  #offeredTo(name: string): readonly string[] {
    return this.#manifests().flatMap(({ actions }) =>
      Object.entries(actions).flatMap(([action, { callers }]) => (callers?.includes(name) ? [canonicalScope(action)] : [])),
    );
  }

  #scopesOf(needs: Readonly<Record<string, readonly string[]>>): readonly string[] {
    return [...new Set(Object.values(needs).flat().map(canonicalScope))];
  }
}
