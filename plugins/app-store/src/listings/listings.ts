import { brokenConstraint, type Caller, isId, isProblem, nameOf, reply, type Reply, sorted } from '@platform/sdk';
import type { Listing, ListingChange, ListingStatus, NewListing } from '../../contract/schema/listing.ts';
import type { Ctx, Of, StoreTx } from '../context.ts';
import { etagOf, seenBy, selectListings, type Viewer, viewerOf } from './listing-row.ts';
import type { ListingRules } from './listing-rules.ts';

type Change = 'created' | 'updated' | 'published' | 'deleted';
interface Filters {
  readonly category?: string;
  readonly app_slug?: string;
  readonly channel?: string;
  readonly q?: string;
  readonly limit?: number;
  readonly sort?: string;
  readonly order?: 'asc' | 'desc';
  readonly cursor?: string;
}
type Changing = Pick<Of<'updateListing'>, 'caller' | 'env' | 'ifMatch'>;

/** Listings: what can be installed, and who sees it (G-APP-01). Life: draft → published → deprecated → archived, or draft → archived. */
export class Listings {
  readonly #ctx: Ctx;
  readonly #rules: ListingRules;

  constructor(ctx: Ctx, rules: ListingRules) {
    [this.#ctx, this.#rules] = [ctx, rules];
  }

  list(caller: Caller, envId: string | undefined, { category, app_slug, channel, q, ...query }: Filters) {
    const { db, page } = this.#ctx;
    const viewer = viewerOf(caller, envId);
    const words = q === undefined ? null : `%${q.replaceAll(/[\\%_]/g, '\\$&')}%`;
    const [c, a, ch] = [category ?? null, app_slug ?? null, channel ?? null];
    return page(
      query,
      sorted(
        { list: `listings ${viewer.name} ${viewer.envId} ${c} ${a} ${ch} ${words}`, order: { created_at: 'time', listing_id: 'id' } },
        query,
        { name: ['name', 'text'], app_slug: ['app_slug', 'text'] },
      ),
      ({ where, order, limit }) =>
        selectListings(
          db.sql,
          db.sql`where ${seenBy(db.sql, viewer)} and (${c}::text is null or categories ? ${c}::text)
            and (${a}::text is null or app_slug = ${a}) and (${ch}::text is null or channel = ${ch})
          and (${words}::text is null or name ilike ${words} or summary ilike ${words} or app_slug ilike ${words}) and ${where}
            order by ${order} limit ${limit}`,
        ),
    );
  }

  async get(caller: Caller, envId: string | undefined, listingId: string): Promise<Reply<Listing>> {
    const listing = await this.seen(viewerOf(caller, envId), listingId);
    return reply(listing, { headers: etagOf(listing) });
  }

  /** What the viewer does not see is not there (G-APP-01). */
  async seen(viewer: Viewer, listingId: string): Promise<Listing> {
    const { sql } = this.#ctx.db;
    const [listing] = isId(listingId) ? await selectListings(sql, sql`where listing_id = ${listingId} and ${seenBy(sql, viewer)}`) : [];
    if (!listing) throw this.#absent();
    return listing;
  }

  /** One that the viewer's environment may change. */
  async own(viewer: Viewer, listingId: string): Promise<Listing> {
    const listing = await this.seen(viewer, listingId);
    if (listing.env_id !== viewer.envId) throw this.#absent();
    return listing;
  }

  async versions(viewer: Viewer, listingId: string): Promise<{ items: Listing[] }> {
    const { sql } = this.#ctx.db;
    const { app_slug, channel } = await this.seen(viewer, listingId);
    const items = await selectListings(
      sql,
      sql`where app_slug = ${app_slug} and channel = ${channel} and listing_id <> ${listingId} and ${seenBy(sql, viewer)}
        order by published_at desc nulls first, listing_id desc limit 100`,
    );
    return { items };
  }

  async roles(viewer: Viewer, listingId: string): Promise<{ items: { name: string; scopes: string; signup: boolean }[] }> {
    const { roles, default_signup_role } = await this.seen(viewer, listingId);
    return { items: roles.map(({ name, scopes }) => ({ name, scopes: scopes.join(', '), signup: name === default_signup_role })) };
  }

  async create({ env, body, caller }: Of<'createListing'>): Promise<Reply<Listing>> {
    const { clock, db, platform } = this.#ctx;
    const content = contentOf(body);
    this.#rules.requireContent(content);
    const { org_id } = await this.#tenant(env);
    const now = clock.now();
    const { app_slug, version, channel = 'stable' } = body;
    const row = {
      listing_id: platform.newId(),
      org_id,
      env_id: env,
      owner_user_id: nameOf(caller),
      app_slug,
      channel,
      version,
      created_at: now,
      updated_at: now,
    };
    try {
      await db.tx(async tx => {
        await tx.sql`insert into app_slugs ${tx.sql.row({ app_slug, org_id })} on conflict do nothing`;
        const [owner] = await tx.sql<{ org_id: string }[]>`select org_id from app_slugs where app_slug = ${app_slug}`;
        if (owner?.org_id !== org_id)
          throw this.#ctx.problem('app_slug_taken', { detail: `Another organization lists "${app_slug}". Choose another slug.` });
        await this.#rules.requireFreeRoles(tx, { ...row, roles: content.roles });
        await tx.sql`insert into listings ${tx.sql.row({ ...row, ...columnsOf(tx, content) })}`;
        await this.#told(tx, 'created', row, caller);
      });
    } catch (cause) {
      if (brokenConstraint(cause) === 'listings_release')
        throw this.#ctx.problem('listing_exists', {
          detail: `${app_slug} ${version} is listed on the channel ${channel}. Choose another version.`,
          cause,
        });
      throw cause;
    }
    const listing = await this.#row(row.listing_id);
    return reply(listing, { status: 201, headers: { location: `/v1/app/store/listings/${row.listing_id}`, ...etagOf(listing) } });
  }

  /** A body that holds the status alone moves the listing on; any other replaces what it says. */
  async update({ params, body, ...by }: Of<'updateListing'>): Promise<Reply<Listing>> {
    const { status, app_slug, channel, version, ...said } = body;
    const replaces = Object.keys(said).length > 0;
    return this.change(params.listing_id, by, async (tx, before) => {
      this.#refuseMoved(before, { app_slug, channel, version });
      if (replaces) {
        if (said.name === undefined || said.backend_url === undefined || said.visibility === undefined)
          throw this.#ctx.problem('immutable_field', {
            detail: 'A replacement says name, backend_url and visibility; to move a listing on, send status alone.',
            extra: {
              errors: (['name', 'backend_url', 'visibility'] as const)
                .filter(member => said[member] === undefined)
                .map(member => ({ pointer: `/${member}`, code: 'required', message: 'is required' })),
            },
          });
        const content = contentOf({ ...said, name: said.name, backend_url: said.backend_url, visibility: said.visibility });
        this.#rules.requireContent(content);
        await this.#rules.requireFreeRoles(tx, { ...before, roles: content.roles });
        await tx.sql`update listings set ${tx.sql.row(columnsOf(tx, content))} where listing_id = ${before.listing_id}`;
      }
      if (status !== undefined && status !== before.status) return this.#move(tx, before, status);
      return 'updated';
    });
  }

  /** One step on its way, for pages. */
  to(status: ListingStatus, { params, ...by }: Of<'publishListing'>): Promise<Reply<Listing>> {
    return this.change(params.listing_id, by, (tx, before) => this.#move(tx, before, status));
  }

  /** A change under the row's lock, with its version, its event and its audit entry in one transaction. */
  async change(
    listingId: string,
    { caller, env, ifMatch }: Changing,
    work: (tx: StoreTx, before: Listing) => Promise<Change>,
  ): Promise<Reply<Listing>> {
    await this.#ctx.db.tx(async tx => {
      const before = await this.#locked(tx, listingId, viewerOf(caller, env));
      this.#ctx.requireVersion(ifMatch, before.row_version);
      const change = await work(tx, before);
      await tx.sql`update listings set row_version = row_version + 1, updated_at = ${this.#ctx.clock.now()}
        where listing_id = ${before.listing_id}`;
      await this.#told(tx, change, before, caller);
    });
    const listing = await this.#row(listingId);
    return reply(listing, { headers: etagOf(listing) });
  }

  async remove({ params, env, caller, ifMatch }: Of<'deleteListing'>): Promise<void> {
    await this.#ctx.db.tx(async tx => {
      const before = await this.#locked(tx, params.listing_id, viewerOf(caller, env));
      this.#ctx.requireVersion(ifMatch, before.row_version);
      const [installed] = await tx.sql<object[]>`select 1 from instances where listing_id = ${before.listing_id} and open limit 1`;
      if (installed)
        throw this.#ctx.problem('listing_installed', {
          detail: 'Uninstall it everywhere first, or archive it: then nobody installs it any more.',
        });
      await tx.sql`delete from listings where listing_id = ${before.listing_id}`;
      for (const { storage_key } of before.media) await tx.enqueue('discard', { storage_key });
      if (before.statistics_property_id) await tx.enqueue('forgetProperty', { property_id: before.statistics_property_id });
      await this.#told(tx, 'deleted', before, caller);
    });
  }

  async #move(tx: StoreTx, before: Listing, status: ListingStatus): Promise<Change> {
    this.#rules.requireWay(before.status, status);
    const now = this.#ctx.clock.now();
    await tx.sql`update listings set status = ${status}, published_at = case when ${status} = 'published' then ${now}::timestamptz
      else published_at end where listing_id = ${before.listing_id}`;
    return status === 'published' ? 'published' : 'updated';
  }

  /** An administrator of an environment changes its listings; those of others, which may be seen, are not there to be changed. */
  async #locked(tx: StoreTx, listingId: string, viewer: Viewer): Promise<Listing> {
    const [listing] = await selectListings(
      tx.sql,
      tx.sql`where listing_id = ${listingId} and env_id = ${viewer.envId ?? null} and ${seenBy(tx.sql, viewer)} for update`,
    );
    if (!listing) throw this.#absent();
    return listing;
  }

  async #row(listingId: string): Promise<Listing> {
    const { sql } = this.#ctx.db;
    const [listing] = await selectListings(sql, sql`where listing_id = ${listingId}`);
    if (!listing) throw this.#absent();
    return listing;
  }

  async #tenant(envId: string): Promise<{ org_id: string }> {
    try {
      return await this.#ctx.services.registry.getEnv({ params: { env_id: envId } });
    } catch (cause) {
      if (isProblem(cause) && cause.status === 404) throw this.#absent();
      throw cause;
    }
  }

  #refuseMoved(before: Listing, said: { readonly [M in 'app_slug' | 'channel' | 'version']: ListingChange[M] | undefined }): void {
    for (const member of ['app_slug', 'channel', 'version'] as const)
      if (said[member] !== undefined && said[member] !== before[member])
        throw this.#ctx.problem('immutable_field', {
          detail: 'A release keeps its application, channel and version. List another one.',
          extra: { errors: [{ pointer: `/${member}`, code: 'immutable', message: 'cannot change' }] },
        });
  }

  async #told(
    tx: StoreTx,
    change: Change,
    { listing_id, env_id, app_slug, channel, version }: Pick<Listing, 'listing_id' | 'env_id' | 'app_slug' | 'channel' | 'version'>,
    caller: Caller,
  ): Promise<void> {
    await tx.emit(`platform:app:listing:${change}`, env_id, { listing_id, app_slug, channel, version });
    await tx.audit({
      action: `listing.${change}`,
      envId: env_id,
      caller,
      resource: { type: 'listing', id: listing_id },
      details: { app_slug, channel, version },
    });
  }

  #absent() {
    return this.#ctx.problem('listing_not_found', { detail: 'There is no such listing, or the caller does not see it.' });
  }
}

/** Everything a listing says, with what is left out as it is by default. */
const contentOf = (body: Pick<NewListing, 'name' | 'backend_url' | 'visibility'> & Partial<NewListing>) => ({
  name: body.name,
  summary: body.summary ?? '',
  description: body.description ?? '',
  categories: body.categories ?? [],
  backend_url: body.backend_url,
  dcr_supported: body.dcr_supported ?? false,
  oauth_defaults: body.oauth_defaults ?? {},
  visibility: body.visibility,
  roles: body.roles ?? [],
  default_signup_role: body.default_signup_role || null,
  onboarding: body.onboarding ?? [],
});

function columnsOf({ sql }: StoreTx, content: ReturnType<typeof contentOf>): object {
  const { categories, oauth_defaults, roles, onboarding } = content;
  return {
    ...content,
    categories: sql.json(categories),
    oauth_defaults: sql.json(oauth_defaults),
    roles: sql.json(roles),
    onboarding: sql.json(onboarding),
  };
}
