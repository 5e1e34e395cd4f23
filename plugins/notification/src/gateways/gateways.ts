import type { Caller, RequestOf, Sql } from '@platform/sdk';
import type { Gateway, GatewayChange, GatewayConfig, NewGateway } from '../../contract/schema/gateway.ts';
import { looksPrivate } from '../adapters/private-address.ts';
import { senderOf } from '../people/mail-address.ts';
import type { Tenants } from '../people/tenants.ts';
import { type Contract, type Ctx, nowOf } from '../context.ts';
import type { ChosenGateways } from './chosen-gateways.ts';
import { gatewayColumns, gatewayOf, type GatewayRow } from './gateway-store.ts';

export type Settings = Omit<GatewayRow, 'gateway_id' | 'version' | 'created_at' | 'updated_at'>;
type Draft = Partial<NewGateway> & GatewayChange;

const SCHEMES: ReadonlySet<string> = new Set(['https:', 'http:', 'smtp:', 'smtps:']);
const REFERENCE = /^(secrets|file|env|vault):\/\/.{1,500}$/;

/**
 * Gateways: what an environment's messages leave by (G-POST-04). Those of an organization or the platform are for the platform's
 * administrators.
 */
export class Gateways {
  readonly #ctx: Ctx;
  readonly #tenants: Tenants;
  readonly #chosen: ChosenGateways;

  constructor(ctx: Ctx, { tenants, chosen }: { tenants: Tenants; chosen: ChosenGateways }) {
    this.#ctx = ctx;
    this.#tenants = tenants;
    this.#chosen = chosen;
  }

  async list({ query, env }: RequestOf<Contract, 'listGateways'>) {
    const { sql } = this.#ctx.db;
    const [channel, org] = [query.channel ?? null, await this.#orgOf(env)];
    const { items, next_cursor } = await this.#ctx.page(
      query,
      { list: `gateways ${env} ${channel ?? ''}`, order: { created_at: 'time', gateway_id: 'id' } },
      ({ where, order, limit }) => sql<GatewayRow[]>`
        select ${gatewayColumns(sql)} from gateways where (scope = 'sys' or env_id = ${env} or (scope = 'org' and org_id = ${org}))
          and (${channel}::text is null or channel = ${channel})
        and ${where} order by ${order} limit ${limit}`,
    );
    return { items: items.map(gatewayOf), next_cursor };
  }

  async get({ params, env }: RequestOf<Contract, 'getGateway'>): Promise<Gateway> {
    return gatewayOf(await this.find(this.#ctx.db.sql, params.gateway_id, env));
  }

  async create({ body, env, caller }: RequestOf<Contract, 'createGateway'>): Promise<Gateway> {
    const settings = await this.settingsOf(body, env, caller);
    const at = nowOf(this.#ctx);
    const row: GatewayRow = { ...settings, gateway_id: this.#ctx.platform.newId(), version: 1, created_at: at, updated_at: at };
    await this.#ctx.db.tx(async tx => {
      await tx.sql`insert into gateways ${tx.sql.row({ ...row, config: tx.sql.json(row.config) })}`;
      await tx.audit({
        action: 'post.gateway.created',
        envId: env,
        caller,
        resource: { type: 'gateway', id: row.gateway_id },
        details: { channel: row.channel, scope: row.scope },
      });
    });
    this.#chosen.changed();
    return gatewayOf(row);
  }

  async update({ params, body, env, caller, ifMatch }: RequestOf<Contract, 'updateGateway'>): Promise<Gateway> {
    const known = await this.find(this.#ctx.db.sql, params.gateway_id, env);
    this.#mayWrite(known.scope, caller);
    const { scope, org_id, env_id } = known;
    const merged = {
      name: known.name,
      gateway_url: known.gateway_url,
      credentials: gatewayOf(known).credentials,
      config: known.config,
      enabled: known.enabled,
      ...body,
      channel: body.channel ?? known.channel,
    };
    const settings = { ...(await this.settingsOf({ ...merged, scope: 'env' }, env, caller)), scope, org_id, env_id };
    const changed = await this.#ctx.db.tx(async tx => {
      const [locked] = await tx.sql<{ version: number }[]>`select version from gateways where gateway_id = ${known.gateway_id} for update`;
      if (!locked) throw this.#ctx.problem('gateway_not_found');
      this.#ctx.requireVersion(ifMatch, locked.version);
      const [row] = await tx.sql<
        GatewayRow[]
      >`update gateways set name = ${settings.name}, channel = ${settings.channel}, gateway_url = ${settings.gateway_url},
        secret_ref = ${settings.secret_ref},
        config = ${tx.sql.json(settings.config)}, enabled = ${settings.enabled}, private_ok = ${settings.private_ok},
          version = version + 1, updated_at = ${nowOf(this.#ctx)}
        where gateway_id = ${known.gateway_id} returning ${gatewayColumns(tx.sql)}`;
      await tx.audit({ action: 'post.gateway.updated', envId: env, caller, resource: { type: 'gateway', id: known.gateway_id } });
      return gatewayOf(row as GatewayRow);
    });
    this.#chosen.changed();
    return changed;
  }

  async remove({ params, env, caller, ifMatch }: RequestOf<Contract, 'deleteGateway'>): Promise<void> {
    const known = await this.find(this.#ctx.db.sql, params.gateway_id, env);
    this.#mayWrite(known.scope, caller);
    await this.#ctx.db.tx(async tx => {
      const [gone] = await tx.sql<{ version: number }[]>`delete from gateways where gateway_id = ${known.gateway_id} returning version`;
      if (!gone) throw this.#ctx.problem('gateway_not_found');
      this.#ctx.requireVersion(ifMatch, gone.version);
      await tx.audit({ action: 'post.gateway.deleted', envId: env, caller, resource: { type: 'gateway', id: known.gateway_id } });
    });
    this.#chosen.changed();
  }

  /** A gateway that an environment can use, or 404. */
  async find(sql: Sql, id: string, env: string): Promise<GatewayRow> {
    const [row] = await sql<GatewayRow[]>`select ${gatewayColumns(sql)} from gateways where gateway_id = ${id}`;
    const usable =
      row && (row.scope === 'sys' || row.env_id === env || (row.scope === 'org' && row.org_id === (await this.#tenants.orgOf(env))));
    if (!row || !usable) throw this.#ctx.problem('gateway_not_found', { detail: 'No gateway with this id serves the environment.' });
    return row;
  }

  /** A description of a gateway, judged: references only, an address that may be reached, a sender. */
  async settingsOf(draft: Draft & { channel: NewGateway['channel']; name: string }, env: string, caller: Caller): Promise<Settings> {
    const scope = draft.scope ?? 'env';
    this.#mayWrite(scope, caller);
    const org_id = scope === 'org' ? (draft.org_id ?? (await this.#tenants.orgOf(env))) : null;
    const private_ok = caller.platformAdmin || !this.#ctx.platform.production;
    const gateway_url = this.#address(draft.gateway_url ?? null, draft.channel, private_ok);
    const secret_ref = this.#reference(draft.credentials ?? null, { env, org_id }, caller);
    const config: GatewayConfig = draft.config ?? {};
    if (config.from !== undefined && !senderOf(config.from))
      throw this.#ctx.problem('gateway_invalid', { detail: 'config.from is one address, or "Name <address>".' });
    return {
      scope,
      org_id,
      env_id: scope === 'env' ? env : null,
      channel: draft.channel,
      name: draft.name,
      gateway_url,
      secret_ref,
      config,
      enabled: draft.enabled ?? true,
      private_ok,
    };
  }

  #mayWrite(scope: Gateway['scope'], caller: Caller): void {
    if (scope !== 'env' && !caller.platformAdmin)
      throw this.#ctx.problem('platform_admin_required', {
        detail: 'Gateways of an organization or of the platform serve others too: ask an administrator of the platform.',
      });
  }

  #address(text: string | null, channel: string, privateOk: boolean): string | null {
    if (text === null || text === '') return null;
    const refuse = (detail: string) => this.#ctx.problem('gateway_url_invalid', { detail });
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url || !SCHEMES.has(url.protocol) || url.hostname === '') throw refuse('Use https://, smtp:// or smtps:// with a host.');
    if (url.username || url.password)
      throw this.#ctx.problem('literal_credential', { detail: 'Name a secret in credentials.secret_ref; the address carries none.' });
    if (url.protocol.startsWith('smtp') && channel !== 'email') throw refuse('SMTP carries e-mail alone.');
    const hidden = looksPrivate(url.hostname);
    if (url.protocol === 'http:' && !hidden) throw refuse('A relay outside the private network is reached by https://.');
    if (hidden && !privateOk) throw refuse('Only administrators of the platform set up gateways in the private network.');
    return text;
  }

  /**
   * Files and variables belong to the machine, and other paths of the secrets service to others: an administrator of one environment may
   * name what is kept for it, and no more, since the gateway's address is theirs as well.
   */
  #reference(credentials: object | null, { env, org_id }: { env: string; org_id: string | null }, caller: Caller): string | null {
    if (credentials === null || Object.keys(credentials).length === 0) return null;
    const { secret_ref: reference, ...others } = credentials as { secret_ref?: unknown };
    if (Object.keys(others).length > 0)
      throw this.#ctx.problem('literal_credential', {
        detail: 'credentials has one member, secret_ref; the secret itself stays in the secrets service.',
      });
    if (typeof reference !== 'string' || !REFERENCE.test(reference))
      throw this.#ctx.problem('literal_credential', { detail: 'secret_ref is secrets://…, vault://…, file:///… or env://…' });
    const theirs = [`secrets://env/${env}/`, ...(org_id ? [`secrets://org/${org_id}/`] : [])].some(
      prefix => reference.startsWith(prefix) && !reference.includes('..'),
    );
    if (!theirs && !caller.platformAdmin)
      throw this.#ctx.problem('credential_reserved', { detail: `Keep the secret at secrets://env/${env}/… and name that.` });
    return reference;
  }

  /** Without an answer of the registry, the gateways of the organization are not shown; those of the environment are. */
  async #orgOf(env: string): Promise<string | null> {
    return this.#tenants.orgOf(env).catch(error => {
      this.#ctx.log.warn({ env_id: env, err: error }, 'the gateways of the organization cannot be listed');
      return null;
    });
  }
}
