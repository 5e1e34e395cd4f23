import { isId, reply, type RequestOf } from '@platform/sdk';
import type { Contract, Ctx } from '../context.ts';
import type { Realms } from '../realms.ts';
import { MetadataRefused } from './client-metadata.ts';
import { type ClientRegistration, registrarOf } from './client-registration.ts';
import type { RegisteredClient, RegisteredClients } from './registered-clients.ts';
import type { VerticalHomes } from './vertical-homes.ts';

type Said = RequestOf<Contract, 'createClient'>['body'];
type Asked = Pick<RequestOf<Contract, 'listClients'>, 'caller' | 'env'>;
interface Parts {
  readonly clients: RegisteredClients;
  readonly homes: VerticalHomes;
  readonly realms: Realms;
  readonly registration: ClientRegistration;
}

/** Applications of an environment, as its administrators and its verticals manage them (F-33). Secrets are told once. */
export class Applications {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async list(request: RequestOf<Contract, 'listClients'>) {
    const envId = await this.#env(request);
    const spec = { list: `clients ${envId}`, order: { client_id: 'text' } } as const;
    const { items, next_cursor } = await this.#ctx.page(request.query, spec, part => this.#parts.clients.page(envId, part));
    return { items: items.map(told), next_cursor };
  }

  async get(request: RequestOf<Contract, 'getClient'>) {
    return told(await this.#one(request));
  }

  async create(request: RequestOf<Contract, 'createClient'>) {
    const envId = await this.#env(request);
    const issued = await this.#refusing(
      this.#parts.registration.create(envId, metadataOf(request.body), registrarOf(request.caller), async () => undefined),
    );
    return reply({ ...told(issued.client), ...(issued.secret === undefined ? {} : { client_secret: issued.secret }) }, { status: 201 });
  }

  /** What is not said stays as it was. */
  async update(request: RequestOf<Contract, 'updateClient'>) {
    const before = await this.#one(request);
    const asked = { ...before.metadata, ...metadataOf(request.body) };
    const { client, secret } = await this.#refusing(this.#parts.registration.change(before, asked, registrarOf(request.caller)));
    return { ...told(client), ...(secret === undefined ? {} : { client_secret: secret }) };
  }

  async rotateSecret(request: RequestOf<Contract, 'rotateClientSecret'>) {
    const client = await this.#one(request);
    const secret = await this.#parts.registration.rotateSecret(client, registrarOf(request.caller).id);
    if (secret === undefined)
      throw this.#ctx.problem('client_without_secret', { detail: 'This application proves who it is in another way.' });
    return { client_id: client.client_id, client_secret: secret };
  }

  async remove(request: RequestOf<Contract, 'removeClient'>): Promise<void> {
    const { env_id: envId, client_id: clientId } = await this.#one(request);
    await this.#parts.registration.remove(envId, clientId, registrarOf(request.caller).id);
  }

  async #one(request: Asked & { readonly params: { readonly client_id: string } }): Promise<RegisteredClient> {
    const envId = await this.#env(request);
    const client = isId(request.params.client_id) ? await this.#parts.clients.read(envId, request.params.client_id) : undefined;
    if (!client) throw this.#ctx.problem('client_not_found');
    return client;
  }

  async #env({ caller, env }: Asked): Promise<string> {
    if (caller.kind === 'machine') await this.#parts.homes.require(caller.subject, caller.vertical, env);
    if (!(await this.#parts.realms.exists(env)))
      throw this.#ctx.problem('realm_not_found', { detail: 'The environment has no sign-in host.' });
    return env;
  }

  async #refusing<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof MetadataRefused)
        throw this.#ctx.problem('client_metadata_invalid', { detail: error.message, cause: error, extra: { error: error.code } });
      throw error;
    }
  }
}

/** Addresses may come as lines, as people type them. */
function metadataOf({ redirect_uris: redirects, ...said }: Said): Record<string, unknown> {
  const listed = typeof redirects === 'string' ? redirects.split(/[\s,]+(?=https?:)|\s+/).filter(Boolean) : redirects;
  return {
    ...said,
    ...(listed === undefined ? {} : { redirect_uris: listed }),
    ...(said.grant_types === undefined ? {} : { response_types: undefined }),
  };
}

function told({ client_id, metadata, secret_hash, issued_at, registered_by, updated_at }: RegisteredClient) {
  return {
    client_id,
    client_name: metadata.client_name,
    redirect_uris: [...metadata.redirect_uris],
    grant_types: [...metadata.grant_types],
    token_endpoint_auth_method: metadata.token_endpoint_auth_method,
    application_type: metadata.application_type,
    scope: metadata.scope,
    first_party: metadata.first_party,
    logo_uri: metadata.logo_uri ?? null,
    id_token_signed_response_alg: metadata.id_token_signed_response_alg,
    has_secret: secret_hash !== null,
    registered_by,
    created_at: new Date(issued_at * 1_000).toISOString(),
    updated_at,
  };
}
