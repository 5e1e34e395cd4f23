import { createHash } from 'node:crypto';
import { notModified, reply, type RequestOf, SYSTEM, FLEET_KEYS } from '@platform/sdk';
import type { Registration } from '../../contract/schema/service.ts';
import type { Contract, Ctx } from '../context.ts';
import { registrationWithout } from './registration-without.ts';
import type { VerticalLives } from './vertical-lives.ts';

interface Row {
  readonly vertical: string;
  readonly registration: Registration;
  readonly registered_at: string;
}

/** What verticals registered at run time; the registry knows none by name (doc1, registry rule 2). */
export class Verticals {
  readonly #ctx: Ctx;
  readonly #lives: VerticalLives;

  constructor(ctx: Ctx, lives: VerticalLives) {
    this.#ctx = ctx;
    this.#lives = lives;
  }

  /**
   * Replaces a vertical's entries; identical content is a no-op (G-SYS-12). Its grants reach the roles before the answer. What somebody
   * took out is not registered again.
   */
  async register({ body: given, caller }: RequestOf<Contract, 'registerVertical'>) {
    const { vertical, version } = given;
    if (caller.vertical !== vertical)
      throw this.#ctx.problem('vertical_mismatch', {
        detail: `The identity speaks for ${caller.vertical ?? 'nobody'}, the body for ${vertical}.`,
      });
    const body = vertical === 'platform' ? given : registrationWithout(given, await this.#lives.withdrawn());
    if (body.services.length === 0 && given.services.length > 0) return { vertical, version, changed: false };
    const grants = body.scopes.flatMap(({ scope, grants: level, machine_only: machineOnly }) =>
      level && !machineOnly ? [{ scope, grants: level }] : [],
    );
    if (vertical !== 'platform') await this.#ctx.services.identity.putGrants({ params: { vertical }, body: { scopes: grants } });
    const { changed, moved } = await this.#keep(body);
    if (changed || moved) await this.#lives.tell();
    return { vertical, version, changed };
  }

  #keep(body: Registration): Promise<{ changed: boolean; moved: boolean }> {
    const { vertical, version } = body;
    const services = body.services.map(({ service }) => service);
    const digest = createHash('sha256').update(JSON.stringify(body)).digest('hex');
    return this.#ctx.db.tx(async tx => {
      const moved = vertical !== 'platform' && (await this.#lives.registered(tx, vertical, services));
      const rows = await tx.sql<object[]>`
        insert into verticals (vertical, registration, services, digest) values (${vertical}, ${tx.sql.json(body)}, ${services}, ${digest})
        on conflict (vertical) do update set registration = excluded.registration, services = excluded.services, digest = excluded.digest,
          registered_at = now() where verticals.digest <> excluded.digest
        returning 1`;
      if (rows.length > 0) await tx.emit('platform:sys:vertical:registered', SYSTEM.envId, { vertical, version });
      return { changed: rows.length > 0, moved };
    });
  }

  /** By vertical and service. Pages of the platform itself are offered only to those who run it. */
  async list({ query, caller }: RequestOf<Contract, 'listVerticals'>) {
    const operator = caller.platformAdmin || caller.kind === 'machine';
    const rows = await this.#rows();
    const spec = { list: 'verticals', order: { key: 'text' }, ascending: true } as const;
    const { items: shown, next_cursor } = await this.#ctx.page(query, spec, async ({ after: [after = ''] = [], limit }) =>
      rows
        .flatMap(({ vertical, registration }) =>
          registration.services.map(service => ({ key: `${vertical}:${service.service}`, vertical, service, registration })),
        )
        .filter(({ key }) => key > after)
        .sort((left, right) => (left.key < right.key ? -1 : 1))
        .slice(0, limit),
    );
    const instances = await this.#up(shown.map(({ service }) => service.service));
    const withdrawn = await this.#lives.withdrawn();
    return {
      items: shown.map(({ vertical, service, registration }) => ({
        ...service,
        // Nobody is shown into what is about to end.
        nav: service.nav.filter(({ scope }) => !withdrawn.has(service.service) && (operator || scope !== 'platform')),
        vertical,
        admin_scopes: registration.admin_scopes,
        error_codes: registration.error_codes.filter(code => code.service === service.service),
        listings: registration.listings,
        health: instances.has(service.service) ? ('up' as const) : ('down' as const),
      })),
      next_cursor,
    };
  }

  /** Services that no environment can turn off; a vertical's word for itself does not count. */
  async essential(): Promise<ReadonlySet<string>> {
    const platform = (await this.#rows()).find(({ vertical }) => vertical === 'platform');
    return new Set(platform?.registration.services.flatMap(({ service, essential }) => (essential ? [service] : [])));
  }

  /** Services that count and delete what they hold of environments. */
  async purging(): Promise<{ service: string; label: string }[]> {
    const rows = await this.#rows();
    return rows.flatMap(({ registration }) =>
      registration.services.flatMap(({ service, label, purges_environments }) => (purges_environments ? [{ service, label }] : [])),
    );
  }

  async serviceIds(): Promise<string[]> {
    const rows = await this.#ctx.db.sql<{ services: string[] }[]>`select services from verticals`;
    return rows.flatMap(({ services }) => services).sort();
  }

  /** The catalog, or 304 to a caller that has this version (RFC 9110, 13.1.2). */
  async catalog({ headers }: RequestOf<Contract, 'scopeCatalog'>) {
    const catalog = await this.scopes();
    const etag = `"${catalog.version}"`;
    const fresh = { etag, 'cache-control': 'public, max-age=60' };
    const known = headers['if-none-match']?.split(',').some(tag => [etag, `W/${etag}`, '*'].includes(tag.trim()));
    return known ? notModified(fresh) : reply(catalog, { headers: fresh });
  }

  /** Scopes of everything registered, and of what runs in this process before it registered. */
  async scopes() {
    const registered = (await this.#rows()).flatMap(({ vertical, registration }) =>
      registration.scopes.map(({ scope, service, title, admin }) => ({ scope, service, vertical, title, admin })),
    );
    const own = this.#ctx.catalog
      .actions()
      .map(({ scope, service, vertical, title, admin }) => ({ scope, service, vertical, title, admin }));
    const scopes = [...new Map([...own, ...registered].map(entry => [entry.scope, entry])).values()].sort((left, right) =>
      left.scope < right.scope ? -1 : 1,
    );
    return { version: createHash('sha256').update(JSON.stringify(scopes)).digest('base64url').slice(0, 16), scopes };
  }

  async #rows(): Promise<readonly Row[]> {
    return this.#ctx.db.sql<Row[]>`select vertical, registration, registered_at from verticals order by vertical`;
  }

  async #up(services: readonly string[]): Promise<Set<string>> {
    const answers = await this.#ctx.kv.pipeline(services.map(service => ['HLEN', FLEET_KEYS.instances(service)])).catch(() => []);
    return new Set(services.filter((_, index) => Number(answers[index]) > 0));
  }
}
