import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { type Caller, type RequestOf, reply } from '@platform/sdk';
import { realmOf } from '../access/access-model.ts';
import type { Contract, Ctx, IdentityTx } from '../context.ts';
import type { Realms } from '../realms.ts';
import type { VerticalHomes } from './vertical-homes.ts';
import { canonicalScope } from '../access/scope-name.ts';
import type { Sessions } from '../sign-in/sessions.ts';
import { acceptMetadata, MetadataRefused, SECRET_METHODS, widens } from './client-metadata.ts';
import type { ClientMetadata, RegisteredClient, RegisteredClients } from './registered-clients.ts';

export const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();
const newSecret = () => randomBytes(32).toString('base64url');
type Members = Readonly<Record<string, unknown>>;

export interface Issued {
  readonly client: RegisteredClient;
  /** Told once, and kept only as a hash. */
  readonly secret: string | undefined;
  readonly registrationToken: string;
}
/** Who registers or changes a client. */
export interface Registrar {
  readonly id: string;
  /**
   * A person who administers the environment, or a part of the platform: a vertical's client is somebody else's, whatever it says of
   * itself.
   */
  readonly trusted: boolean;
}
interface Changed {
  readonly client: RegisteredClient;
  readonly secret: string | undefined;
}
/** An application that could register others would make itself one that nobody is asked about. */
const NEVER_FOR_APPLICATIONS = new Set(['auth:clients:write']);
interface Parts {
  readonly clients: RegisteredClients;
  readonly homes: VerticalHomes;
  readonly realms: Realms;
  readonly sessions: Sessions;
  /** The protocol core's own opinion of the metadata; throws what it dislikes. */
  readonly validate: (envId: string, metadata: ClientMetadata) => Promise<void>;
}

/**
 * Registers clients, changes and deletes them (RFC 7591, 7592). Row, event and audit entry are one transaction; the next request everywhere
 * sees it.
 */
export class ClientRegistration {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** From inside the platform: what an install of an app asks for. */
  async register({ body, headers, caller }: RequestOf<Contract, 'registerClient'>) {
    const envId = realmOf(this.#ctx, { headers });
    await this.#parts.homes.require(caller.subject, caller.vertical, envId);
    if (!(await this.#parts.realms.exists(envId)))
      throw this.#ctx.problem('realm_not_found', { detail: 'The environment has no sign-in host.' });
    try {
      const issued = await this.create(envId, body as Members, registrarOf(caller), async () => undefined);
      return reply(registrationOf(issued), { status: 201 });
    } catch (error) {
      if (error instanceof MetadataRefused)
        throw this.#ctx.problem('client_metadata_invalid', { detail: error.message, cause: error, extra: { error: error.code } });
      throw error;
    }
  }

  async delete({ params, headers, caller }: RequestOf<Contract, 'deleteClient'>): Promise<void> {
    const envId = realmOf(this.#ctx, { headers });
    await this.#parts.homes.require(caller.subject, caller.vertical, envId);
    await this.remove(envId, params.client_id, caller.subject);
  }

  /** What somebody registered who never heard the answer is found by the name that they gave it. A repeat finds nothing to do. */
  async deleteOf({ params, headers, caller }: RequestOf<Contract, 'deleteClientsOf'>): Promise<void> {
    const envId = realmOf(this.#ctx, { headers });
    await this.#parts.homes.require(caller.subject, caller.vertical, envId);
    const rows = await this.#ctx.db.sql<{ client_id: string }[]>`
      select client_id from oauth_clients where env_id = ${envId} and registered_by = ${registrarOf(caller).id}
        and metadata ->> 'software_id' = ${params.software_id}`;
    for (const { client_id } of rows) await this.remove(envId, client_id, caller.subject);
  }

  /** `spend` runs in the transaction: a caller that cannot use up the initial access token registers nothing. */
  async create(envId: string, asked: Members, by: Registrar, spend: (tx: IdentityTx) => Promise<void>): Promise<Issued> {
    const metadata = await this.#accept(envId, asked);
    requireModest(by, metadata);
    const clientId = this.#ctx.platform.newId();
    const secret = SECRET_METHODS.includes(metadata.token_endpoint_auth_method) ? newSecret() : undefined;
    const registrationToken = newSecret();
    await this.#ctx.db.tx(async tx => {
      await spend(tx);
      const row = {
        env_id: envId,
        client_id: clientId,
        metadata: tx.sql.json(metadata),
        secret_hash: secret ? hashOf(secret) : null,
        registration_hash: hashOf(registrationToken),
        registered_by: by.id,
      };
      await tx.sql`insert into oauth_clients ${tx.sql.row(row)}`;
      await tx.emit('platform:auth:client:created', envId, { client_id: clientId, env_id: envId });
      await tx.audit({
        action: 'auth.client.created',
        envId,
        resource: { type: 'oauth_client', id: clientId },
        details: { name: metadata.client_name, registered_by: by.id },
      });
    });
    await this.#parts.clients.changed(envId);
    const client = (await this.#parts.clients.read(envId, clientId)) as RegisteredClient;
    return { client, secret, registrationToken };
  }

  /** Replaces the metadata. A secret comes into being, or goes, with the method that needs it; one that stays is never told again. */
  async update(before: RegisteredClient, asked: Members): Promise<Changed> {
    const widened = widens(before.metadata, await this.#accept(before.env_id, asked));
    if (widened) throw new MetadataRefused('invalid_client_metadata', `${widened} can not be widened by the client; register it anew`);
    return this.change(before, asked, { id: before.client_id, trusted: true });
  }

  /** The same by somebody who may give a client more than it had. */
  async change(before: RegisteredClient, asked: Members, by: Registrar): Promise<Changed> {
    const { env_id: envId, client_id: clientId } = before;
    const metadata = await this.#accept(envId, asked);
    requireModest(by, metadata);
    const needed = SECRET_METHODS.includes(metadata.token_endpoint_auth_method);
    const secret = needed && before.secret_hash === null ? newSecret() : undefined;
    await this.#ctx.db.tx(async tx => {
      const rows = await tx.sql<object[]>`
        update oauth_clients set metadata = ${tx.sql.json(metadata)}, updated_at = now(), secret_hash = case
          when ${needed} then coalesce(${secret ? hashOf(secret) : null}::bytea, secret_hash) end
        where env_id = ${envId} and client_id = ${clientId} returning 1`;
      if (rows.length === 0) throw new MetadataRefused('invalid_client_metadata', 'the client was deleted meanwhile');
      await tx.emit('platform:auth:client:updated', envId, { client_id: clientId, env_id: envId });
      await tx.audit({
        action: 'auth.client.updated',
        envId,
        resource: { type: 'oauth_client', id: clientId },
        details: { updated_by: by.id },
      });
    });
    await this.#parts.clients.changed(envId);
    return { client: (await this.#parts.clients.read(envId, clientId)) ?? before, secret };
  }

  /** Another secret in place of the one before, which is worth nothing from now on; `undefined` for a client that has none. */
  async rotateSecret({ env_id: envId, client_id: clientId }: RegisteredClient, by: string): Promise<string | undefined> {
    const secret = newSecret();
    const rotated = await this.#ctx.db.tx(async tx => {
      const rows = await tx.sql<object[]>`
        update oauth_clients set secret_hash = ${hashOf(secret)}, updated_at = now()
        where env_id = ${envId} and client_id = ${clientId} and secret_hash is not null returning 1`;
      if (rows.length === 0) return false;
      await tx.emit('platform:auth:client:updated', envId, { client_id: clientId, env_id: envId });
      await tx.audit({
        action: 'auth.client.secret_rotated',
        envId,
        resource: { type: 'oauth_client', id: clientId },
        details: { rotated_by: by },
      });
      return true;
    });
    if (!rotated) return undefined;
    await this.#parts.clients.changed(envId);
    return secret;
  }

  /** Deletes a client with its codes, tokens, grants and consents. A repeat finds nothing to do. */
  async remove(envId: string, clientId: string, by: string): Promise<void> {
    const ended: string[] = [];
    await this.#ctx.db.tx(async tx => {
      const rows = await tx.sql<object[]>`delete from oauth_clients where env_id = ${envId} and client_id = ${clientId} returning 1`;
      if (rows.length === 0) return;
      await tx.sql`delete from grant_selections where grant_id in (select grant_id from oidc_state where env_id = ${envId}
        and payload ->> 'clientId' = ${clientId} and grant_id is not null)`;
      const grants = await tx.sql<{ name: string }[]>`
        with gone as (delete from oidc_state where env_id = ${envId} and payload ->> 'clientId' = ${clientId}
          returning model, id_hash, grant_id)
        select encode(id_hash, 'hex') as name from gone where model = 'Grant' union
          select encode(sha256(convert_to(grant_id, 'UTF8')), 'hex') from gone where grant_id is not null`;
      ended.push(...grants.map(({ name }) => name));
      await this.#parts.sessions.revokeGrants(tx, ended);
      await tx.emit('platform:auth:client:deleted', envId, { client_id: clientId, env_id: envId });
      await tx.audit({
        action: 'auth.client.deleted',
        envId,
        resource: { type: 'oauth_client', id: clientId },
        details: { deleted_by: by },
      });
    });
    await this.#parts.sessions.markGrants(ended);
    await this.#parts.clients.changed(envId);
  }

  async #accept(envId: string, asked: Members): Promise<ClientMetadata> {
    const { db, catalog, platform } = this.#ctx;
    const registered = await db.sql<{ scope: string }[]>`select scope from vertical_grants`;
    const actions = new Set([
      ...catalog.actions().flatMap(({ scope, machineOnly }) => (machineOnly ? [] : [canonicalScope(scope)])),
      ...registered.map(({ scope }) => scope),
    ]);
    for (const action of NEVER_FOR_APPLICATIONS) actions.delete(action);
    const metadata = acceptMetadata(asked, { actions, loopbackSources: !platform.production });
    await this.#parts.validate(envId, metadata);
    return metadata;
  }
}

export const registrarOf = ({ userId, subject, kind, vertical }: Caller): Registrar => ({
  id: userId ?? subject,
  trusted: kind !== 'machine' || vertical === 'platform',
});

function requireModest({ trusted }: Registrar, { first_party: own, app_instance_id: instance }: ClientMetadata): void {
  if (!trusted && (own || instance !== undefined))
    throw new MetadataRefused('invalid_client_metadata', 'a vertical registers applications that people are asked about');
}

/** The answer of RFC 7591 3.2.1. */
export function registrationOf(
  { client, secret, registrationToken }: { client: RegisteredClient; secret: string | undefined; registrationToken?: string },
  uri?: string,
): Record<string, unknown> {
  return {
    client_id: client.client_id,
    client_id_issued_at: client.issued_at,
    ...(secret === undefined ? {} : { client_secret: secret, client_secret_expires_at: 0 }),
    ...client.metadata,
    ...(registrationToken === undefined ? {} : { registration_access_token: registrationToken }),
    ...(uri === undefined ? {} : { registration_client_uri: uri }),
  };
}

export function matches(hash: string | null, secret: string): boolean {
  const expected = Buffer.from(hash ?? '', 'hex');
  const given = hashOf(secret);
  return expected.length === given.length && timingSafeEqual(expected, given);
}
