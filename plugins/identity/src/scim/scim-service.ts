import { ERROR_FORMS, errorBody, isProblem, type RawExchange } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import type { Realm, Realms } from '../realms.ts';
import { type BulkOperation, type BulkOutcome, runBulk } from './scim-bulk.ts';
import { discovered, isDiscovery } from './scim-discovery.ts';
import { projected } from './scim-document.ts';
import { ScimError } from './scim-error.ts';
import { readScimQuery, readSearch, type ScimQuery } from './scim-listing.ts';
import { resourceOf, type ScimRecord, tagOf } from './scim-record.ts';
import { names, type ScimCall, type ScimUsers } from './scim-users.ts';

const LIST = 'urn:ietf:params:scim:api:messages:2.0:ListResponse';

interface Asked {
  readonly request: Request;
  readonly realm: Realm;
  readonly base: string;
  readonly call: ScimCall;
  readonly permits: RawExchange['permits'];
  readonly once: RawExchange['once'];
}

/**
 * SCIM 2.0 for users (RFC 7644). Reading needs `scim:read` or `scim:write`, changing `scim:write`; the realm is the token's, or the
 * target's.
 */
export class ScimService {
  readonly #ctx: Ctx;
  readonly #realms: Realms;
  readonly #users: ScimUsers;

  constructor(ctx: Ctx, { realms, users }: { realms: Realms; users: ScimUsers }) {
    this.#ctx = ctx;
    this.#realms = realms;
    this.#users = users;
  }

  async handle({ request, params, caller, env, hostname, permits, once }: RawExchange): Promise<Response> {
    if (!caller || env === undefined) throw new ScimError(401, 'Send an access token.');
    const realm = await this.#realms.ofEnv(env);
    const base = `${this.#ctx.platform.publicOrigin(hostname)}/scim/v2`;
    const [kind = '', id, ...more] = (params['rest'] ?? '').split('/');
    const { method } = request;
    const call = { caller, realm, ifMatch: request.headers.get('if-match') ?? undefined };
    const asked: Asked = { request, realm, base, permits, once, call };
    if (more.length > 0) throw nothing();
    if (isDiscovery(kind)) {
      allow(method, 'GET');
      if (new URL(request.url).searchParams.has('filter')) throw new ScimError(403, 'What the service can do is not filtered.');
      const found = discovered(base, kind, id);
      return answer(200, Array.isArray(found) ? listOf(found, found.length, 1) : found);
    }
    if (kind === 'Me') throw new ScimError(501, 'There is no /Me here; the account page is the person’s own.');
    if (kind === 'Bulk' && id === undefined) {
      allow(method, 'POST');
      await mayWrite(asked);
      const body = await this.#body(request);
      return once(body, async () =>
        answer(200, await runBulk(body, { run: operation => this.#operate(asked, operation), refused: error => this.#refused(error) })),
      );
    }
    if (id === '.search' && kind === 'Users') {
      allow(method, 'POST');
      const body = await this.#body(request);
      return once(body, () => this.#list(asked, readSearch(body)));
    }
    if (kind !== 'Users') throw nothing();
    return id === undefined ? this.#collection(asked) : this.#one(asked, id);
  }

  /** Below it is everything: no resources of several types are searched at once here (RFC 7644, 3.4.2.1). */
  root(): never {
    throw nothing();
  }

  async #collection(asked: Asked): Promise<Response> {
    const { request, base, call, once } = asked;
    allow(request.method, 'GET', 'POST');
    const query = readScimQuery(Object.fromEntries(new URL(request.url).searchParams));
    if (request.method === 'GET') return this.#list(asked, query);
    await mayWrite(asked);
    const body = await this.#body(request);
    return once(body, async () => {
      const record = await this.#users.create(call, body);
      return answer(201, projected(resourceOf(record, base), query), { location: `${base}/Users/${record.user_id}`, etag: tagOf(record) });
    });
  }

  async #one(asked: Asked, id: string): Promise<Response> {
    const { request, base, call, realm } = asked;
    allow(request.method, 'GET', 'PUT', 'PATCH', 'DELETE');
    const query = readScimQuery(Object.fromEntries(new URL(request.url).searchParams));
    const shown = (record: ScimRecord) =>
      answer(200, projected(resourceOf(record, base), query), { location: `${base}/Users/${record.user_id}`, etag: tagOf(record) });
    if (request.method === 'GET') {
      const record = await this.#users.get(realm, id);
      const known = request.headers.get('if-none-match');
      return known !== null && names(known, record) ? new Response(null, { status: 304, headers: { etag: tagOf(record) } }) : shown(record);
    }
    await mayWrite(asked);
    if (request.method === 'DELETE') {
      await this.#users.remove(call, id);
      return new Response(null, { status: 204 });
    }
    const body = await this.#body(request);
    return shown(await (request.method === 'PUT' ? this.#users.replace(call, id, body) : this.#users.patch(call, id, body)));
  }

  async #list({ realm, base }: Asked, query: ScimQuery): Promise<Response> {
    const { total, records } = await this.#users.list(realm, query);
    return answer(
      200,
      listOf(
        records.map(record => projected(resourceOf(record, base), query)),
        total,
        query.startIndex,
      ),
    );
  }

  async #operate({ base, call }: Asked, { method, path, ifMatch, data }: BulkOperation): Promise<BulkOutcome> {
    const [, id] = /^\/?Users(?:\/([^/?]+))?$/.exec(path) ?? [undefined, undefined];
    if (!/^\/?Users(\/|$)/.test(path) || (method === 'POST') !== (id === undefined))
      throw new ScimError(404, `Nothing is at ${path}.`, 'invalidPath');
    const meant = { ...call, ifMatch };
    if (method === 'DELETE') {
      await this.#users.remove(meant, id as string);
      return { status: 204, location: `${base}/Users/${id}` };
    }
    const record =
      method === 'POST'
        ? await this.#users.create(meant, data)
        : await (method === 'PUT' ? this.#users.replace(meant, id as string, data) : this.#users.patch(meant, id as string, data));
    return { status: method === 'POST' ? 201 : 200, location: `${base}/Users/${record.user_id}`, version: tagOf(record) };
  }

  async #body(request: Request): Promise<unknown> {
    const type = request.headers.get('content-type') ?? '';
    if (!/^application\/(scim\+)?json\s*(;|$)/i.test(type)) throw new ScimError(415, 'Send application/scim+json.');
    const text = await request.text();
    try {
      return JSON.parse(text) as unknown;
    } catch {
      throw new ScimError(400, 'The body is not JSON.', 'invalidSyntax');
    }
  }

  /** The outcome of an operation that failed for itself. What failed on our side is told no more than that. */
  #refused(error: unknown): BulkOutcome {
    if (isProblem(error) && error.status < 500) return { status: error.status, error: errorBody(error, { form: 'scim' }).body };
    this.#ctx.log.error({ err: error }, 'an operation of a SCIM bulk request failed');
    const told = new ScimError(isProblem(error) ? error.status : 500, 'Something failed on our side. Send this operation again later.');
    return { status: told.status, error: errorBody(told, { form: 'scim' }).body };
  }
}

const nothing = (): ScimError => new ScimError(404, 'Nothing is here. Users are at /scim/v2/Users.');

const listOf = (resources: readonly object[], total: number, startIndex: number): object => ({
  schemas: [LIST],
  totalResults: total,
  startIndex,
  itemsPerPage: resources.length,
  Resources: resources,
});

async function mayWrite({ permits }: Asked): Promise<void> {
  if (!(await permits('scim:write'))) throw new ScimError(403, 'Changing users needs the scope scim:write.');
}

function allow(method: string, ...methods: readonly string[]): void {
  if (!methods.includes(method) && !(method === 'HEAD' && methods.includes('GET')))
    throw new ScimError(405, `Here: ${methods.join(', ')}.`, undefined, { allow: methods.join(', ') });
}

const answer = (status: number, body: object, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': ERROR_FORMS.scim.type, 'cache-control': 'no-store', ...headers },
  });
