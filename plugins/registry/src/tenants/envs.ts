import { brokenConstraint, type Caller, isProblem, type RequestOf } from '@platform/sdk';
import type { Env, Org } from '../../contract/schema/tenant.ts';
import type { Contract, Ctx, RegistryTx } from '../context.ts';
import type { PolicyStore } from '../policy/policy-store.ts';
import { needProof } from './domain-proofs.ts';
import { isTrusted } from './access.ts';
import { requireAuthDomain, taken } from './host-ownership.ts';
import { PROVISIONING_MS } from './endings/creations.ts';
import type { TenantParts } from './orgs.ts';
import { authHostOf } from './sign-in-host.ts';
import { requireSlug } from './slug.ts';
import { refuseSystem, requireChange } from './status.ts';
import { envSnapshot } from './snapshot.ts';
import { envSubject } from './subject.ts';

/** Environments: record, platform policies, access model and sign-in realm in one synchronous create (registry rules 3 and 4). */
export class Envs {
  readonly #ctx: Ctx;
  readonly #parts: TenantParts & { readonly policies: PolicyStore };

  constructor(ctx: Ctx, parts: TenantParts & { readonly policies: PolicyStore }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async create({ body, caller, correlationId }: RequestOf<Contract, 'createEnv'>): Promise<Env> {
    const { platform } = this.#ctx;
    requireSlug(this.#ctx, body.slug);
    await this.#parts.access.reach(caller, body.org_id, 'admin');
    const row = {
      env_id: platform.newId(),
      org_id: body.org_id,
      slug: body.slug,
      display_name: body.display_name,
      auth_domain: body.auth_domain ?? null,
    };
    const { env, org } = await this.#insert(row, caller, correlationId);
    await this.#parts.creations.complete(envSubject(env), caller, correlationId, authHostOf(env, org, platform.domain));
    await this.#parts.changes.publish({ scope: 'env', org_id: org.org_id, env_id: env.env_id });
    return env;
  }

  async list({ query, caller }: RequestOf<Contract, 'listEnvs'>) {
    if (query.org_id) await this.#parts.access.org(caller, query.org_id);
    const everything = isTrusted(caller) || query.org_id !== undefined;
    const { orgs, envs } = everything ? { orgs: new Map(), envs: new Map() } : await this.#parts.access.levels(caller);
    const org = query.org_id ?? null;
    return this.#ctx.page(
      query,
      { list: `envs ${org}`, order: { created_at: 'time', env_id: 'id' } },
      ({ where, order, limit }) => this.#ctx.db.sql<Env[]>`
      select * from envs
      where (${org}::uuid is null or org_id = ${org}::uuid) and (${everything} or org_id = any(${[...orgs.keys()]}::uuid[])
        or env_id = any(${[...envs.keys()]}::uuid[])) and ${where}
      order by ${order} limit ${limit}`,
    );
  }

  async get({ params, caller }: RequestOf<Contract, 'getEnv'>): Promise<Env> {
    const { org: _, ...env } = await this.#parts.access.env(caller, params.env_id);
    return env;
  }

  async update({ params, body, caller, correlationId, ifMatch }: RequestOf<Contract, 'updateEnv'>): Promise<Env> {
    const { problem, db } = this.#ctx;
    const known = await this.#parts.access.env(caller, params.env_id, 'admin');
    const { env_id: envId } = known;
    // Whatever becomes of this change, the identity service ends where the record is.
    if (body.auth_domain !== undefined && body.auth_domain !== known.auth_domain)
      await db.tx(tx => this.#parts.followUps.ask(tx, [envSubject(known)], PROVISIONING_MS / 1_000));
    const { env, moved } = await db
      .tx(async tx => {
        const { org, ...before } = await this.#lock(tx, known);
        this.#ctx.requireVersion(ifMatch, before.version);
        if (body.slug !== undefined && body.slug !== before.slug)
          throw problem('immutable_field', { detail: 'Archive the environment and create another to change its slug.' });
        requireChange(this.#ctx, caller, body.status, { org, env: before });
        if (body.status !== undefined && body.status !== before.status) refuseSystem(this.#ctx, before);
        const authDomain = body.auth_domain === undefined ? before.auth_domain : body.auth_domain;
        if (authDomain !== null && authDomain !== before.auth_domain) {
          await requireAuthDomain(this.#ctx, tx.sql, org, authDomain);
          await needProof(this.#ctx, tx.sql, org.org_id, authDomain);
        }
        const [changed] = await tx.sql<[Env]>`
          update envs set display_name = ${body.display_name ?? before.display_name}, auth_domain = ${authDomain},
            status = ${body.status ?? before.status}, updated_at = now(), version = version + 1
          where env_id = ${envId} returning *`;
        const moves = authDomain === before.auth_domain ? [] : [envSubject(changed)];
        await this.#parts.followUps.ask(tx, moves);
        await tx.emit('platform:sys:env:updated', envId, envSnapshot(changed, org));
        await this.#parts.audit.write(tx, {
          action: 'env.updated',
          envId,
          caller,
          correlationId,
          resource: { type: 'env', id: envId },
          details: { ...body },
        });
        // The identity service has the last word on who signs in on a host: its refusal undoes the change.
        if (moves.length > 0) await this.#claimHost(changed, org);
        return { env: changed, moved: moves };
      })
      .catch(cause => this.#conflict(cause, body));
    await this.#parts.followUps.tryNow(moved);
    if (body.status !== undefined) await this.#parts.states.publish({ orgId: env.org_id, envId });
    await this.#parts.changes.publish({ scope: 'env', org_id: env.org_id, env_id: envId });
    return env;
  }

  async archive({ params, caller, correlationId, ifMatch }: RequestOf<Contract, 'archiveEnv'>): Promise<Env> {
    const known = await this.#parts.access.env(caller, params.env_id, 'admin');
    refuseSystem(this.#ctx, known);
    const env = await this.#ctx.db.tx(async tx => {
      const { org: _, ...before } = await this.#lock(tx, known);
      this.#ctx.requireVersion(ifMatch, before.version);
      if (before.status === 'archived') return before;
      const [archived] = await tx.sql<
        [Env]
      >`update envs set status = 'archived', updated_at = now(), version = version + 1 where env_id = ${before.env_id} returning *`;
      await this.#parts.creations.forget(tx, [before.env_id]);
      await this.#parts.followUps.ask(tx, [envSubject(before)]);
      await tx.emit('platform:sys:env:archived', before.env_id, { env_id: before.env_id, org_id: before.org_id });
      await this.#parts.audit.write(tx, {
        action: 'env.archived',
        envId: before.env_id,
        caller,
        correlationId,
        resource: { type: 'env', id: before.env_id },
      });
      return archived;
    });
    await this.#parts.followUps.tryNow([envSubject(env)]);
    await this.#parts.states.publish({ orgId: env.org_id, envId: env.env_id });
    await this.#parts.changes.publish({ scope: 'env', org_id: env.org_id, env_id: env.env_id });
    return env;
  }

  async #claimHost(env: Env, org: Org): Promise<void> {
    const { services, platform } = this.#ctx;
    try {
      await services.identity.putRealm({
        params: { env_id: env.env_id },
        body: { host: authHostOf(env, org, platform.domain), org_id: org.org_id },
      });
    } catch (cause) {
      if (isProblem(cause) && cause.code === 'host_taken') throw taken(this.#ctx, '/auth_domain', env.auth_domain ?? '', cause);
      throw cause;
    }
  }

  async #insert(
    row: Pick<Env, 'env_id' | 'org_id' | 'slug' | 'display_name' | 'auth_domain'>,
    caller: Caller,
    correlationId: string,
  ): Promise<{ env: Env; org: Org }> {
    const { db, problem } = this.#ctx;
    return db
      .tx(async tx => {
        // Before the record, which takes over a host that its organization has left.
        const [named] =
          row.auth_domain === null
            ? []
            : await tx.sql<Org[]>`select * from orgs where org_id = ${row.org_id} and status = 'active' for share`;
        if (named && row.auth_domain !== null) {
          await requireAuthDomain(this.#ctx, tx.sql, named, row.auth_domain);
          await needProof(this.#ctx, tx.sql, row.org_id, row.auth_domain);
        }
        // The organization first: who deletes it takes its lock before anything else, too.
        const [[made]] = await Promise.all([
          this.#record(tx, row),
          this.#parts.creations.begin(tx, envSubject(row), caller, correlationId),
          // Before the access model, so that the first call into the environment passes (registry rule 4).
          this.#parts.policies.seed(tx, row.env_id),
        ]);
        if (!made) throw this.#parts.access.gone(caller, row.org_id);
        const { org, buried, ...env } = made;
        if (org.status !== 'active') throw problem('org_not_active', { detail: `The organization is ${org.status}.` });
        if (buried) throw problem('slug_taken', { detail: 'The slug belonged to an environment that was deleted.' });
        await tx.emit('platform:sys:env:created', env.env_id, envSnapshot(env, org), env.env_id);
        return { env, org };
      })
      .catch(cause => this.#conflict(cause, row));
  }

  /** The record, in an organization that is active and never had one of this slug that was deleted; else what stands against it. */
  async #record(
    tx: RegistryTx,
    {
      env_id: envId,
      org_id: orgId,
      slug,
      display_name: name,
      auth_domain: authDomain,
    }: Pick<Env, 'env_id' | 'org_id' | 'slug' | 'display_name' | 'auth_domain'>,
  ) {
    // Shared, so that an archive or delete of the organization waits for this row or stops it.
    return await tx.sql<(Env & { org: Org; buried: boolean })[]>`
      with org as (select * from orgs where org_id = ${orgId} for share),
      buried as (select 1 from tombstones where kind = 'env_slug' and name = ${`${orgId}/${slug}`}),
      env as (
        insert into envs (env_id, org_id, slug, display_name, auth_domain)
        select ${envId}, org_id, ${slug}, ${name}, ${authDomain} from org where status = 'active' and not exists (select 1 from buried)
          returning *)
      select env.*, to_jsonb(org) as org, exists (select 1 from buried) as buried from org left join env on true`;
  }

  #conflict(cause: unknown, { slug = '', auth_domain: authDomain }: { slug?: string; auth_domain?: string | null }): never {
    const broken = brokenConstraint(cause);
    if (broken === undefined) throw cause;
    if (broken === 'envs_auth_domain_key' || broken === 'hostnames_pkey') throw taken(this.#ctx, '/auth_domain', authDomain ?? '', cause);
    throw this.#ctx.problem('slug_taken', {
      detail: `"${slug}" is in use in this organization.`,
      extra: { errors: [{ pointer: '/slug', code: 'taken', message: 'is in use' }] },
    });
  }

  /** Its organization is kept as it is, too; first, as who deletes it takes its lock. */
  async #lock(tx: RegistryTx, { env_id: envId, org_id: orgId }: Env): Promise<Env & { org: Org }> {
    const [[org], [env]] = await Promise.all([
      tx.sql<Org[]>`select * from orgs where org_id = ${orgId} for share`,
      tx.sql<Env[]>`select * from envs where env_id = ${envId} for update`,
    ]);
    if (!org || !env) throw this.#ctx.problem('env_not_found', { detail: 'It was deleted in the meantime.' });
    return { ...env, org };
  }
}
