import { Readable } from 'node:stream';
import { FairShare, type RawExchange, reply, type Reply, type UploadOf } from '@platform/sdk';
import type { storage } from '../../contract/index.ts';
import type { Written } from '../../contract/schema.ts';
import type { Blobs, Span } from '../blobs/blobs.ts';
import type { StorageContext } from '../context.ts';
import { rangeOf } from './byte-range.ts';
import { checkedBytes } from './checked-bytes.ts';
import type { IncomingBytes } from './incoming-bytes.ts';
import { faultOf, prefixOf } from './object-key.ts';
import { allowsChange, conditionsOf, etagOf, readStatus } from './preconditions.ts';

interface Row {
  readonly blob_id: string;
  readonly size: number;
  readonly sha256: string;
  readonly content_type: string;
  readonly updated_at: string;
}
interface Addressed {
  readonly key: string;
  readonly owner: string;
  readonly envId: string | null;
}

const METHODS = 'GET, HEAD, PUT, DELETE';
const TYPE = /^[\w.+-]+\/[\w.+-]+(?:\s*;\s*[\w.-]+="?[\w.+-]+"?)*$/;

/** Objects over HTTP (G-STO-01): the row in the database is the truth, and names bytes that never change. */
export class Objects {
  readonly #ctx: StorageContext;
  readonly #blobs: Blobs;
  readonly #incoming: IncomingBytes;
  readonly #places = new FairShare({ total: 256, perParty: 64, atBound: 'refuse' });

  constructor(ctx: StorageContext, blobs: Blobs, incoming: IncomingBytes) {
    this.#ctx = ctx;
    this.#blobs = blobs;
    this.#incoming = incoming;
  }

  /** Transfers that are under way. */
  get transfers(): number {
    return this.#places.size;
  }

  async answer(exchange: RawExchange): Promise<Response> {
    const { method } = exchange.request;
    if (!METHODS.split(', ').includes(method)) throw this.#ctx.problem('method_refused', { headers: { allow: METHODS } });
    const action = method === 'DELETE' ? 'storage:objects:write' : 'storage:objects:read';
    const addressed = await this.#address(exchange, action, await exchange.permits(action));
    if (method === 'DELETE') return this.#delete(addressed, exchange.request);
    return this.#get(addressed, exchange.request);
  }

  /** The key that is asked for, where it is one of the caller's own. */
  #address({ params, caller, targetEnvId }: Pick<RawExchange, 'params' | 'caller' | 'targetEnvId'>, action: string, permitted: boolean) {
    const key = params['key'] ?? '';
    const fault = faultOf(key);
    if (fault) throw this.#ctx.problem('key_invalid', { detail: fault });
    if (!permitted) throw this.#ctx.problem('key_denied', { detail: `This workload lacks ${action}.` });
    const owner = prefixOf(caller, targetEnvId);
    if (owner === undefined)
      throw this.#ctx.problem('key_denied', {
        detail: 'Objects are for workloads; those of a vertical name the environment in target_env_id.',
      });
    if (!key.startsWith(owner)) throw this.#ctx.problem('key_denied', { detail: `The keys of this caller begin with ${owner}` });
    return { key, owner: owner.slice(0, -1), envId: targetEnvId ?? null } satisfies Addressed;
  }

  async put(request: UploadOf<typeof storage, 'putObject'>): Promise<Reply<Written>> {
    const { caller, headers } = request;
    const permitted = await this.#ctx.policy.allows(caller, 'storage:objects:write');
    const { key, owner, envId } = this.#address(request, 'storage:objects:write', permitted);
    const conditions = conditionsOf(name => headers[name]);
    // Asked before a byte is read, and again when it counts.
    if (!allowsChange(conditions, tagOf(await this.#row(key)))) throw this.#unmet();
    using _ = this.#place(owner);
    const received = await this.#incoming.receive(request);
    const blobId = this.#ctx.platform.newId();
    try {
      await this.#blobs.keep(blobId, received);
    } catch (cause) {
      await this.#incoming.forget(received.path);
      throw this.#unreachable(cause);
    }
    const type = headers['content-type'] ?? '';
    const now = this.#ctx.clock.now();
    const row = {
      env_id: envId,
      blob_id: blobId,
      size: received.size,
      sha256: received.sha256,
      content_type: TYPE.test(type) ? type : 'application/octet-stream',
      updated_at: now,
    };
    const before = await this.#ctx.db.tx(async ({ sql }) => {
      await sql`select pg_advisory_xact_lock(hashtextextended(${key}, 0))`;
      const [found] = await sql<Row[]>`select blob_id, size, sha256, content_type, updated_at from objects where key = ${key} for update`;
      if (!allowsChange(conditions, tagOf(found))) return 'unmet';
      if (found) await sql`update objects set ${sql.row(row)} where key = ${key}`;
      else await sql`insert into objects ${sql.row({ key, owner, ...row, created_at: now })}`;
      return found ? 'replaced' : 'made';
    });
    if (before === 'unmet') {
      // Nobody knows these bytes. Where this fails the sweep finds them.
      await this.#blobs.delete(blobId).catch(err => this.#ctx.log.warn({ err }, 'bytes of a refused write are left to the sweep'));
      throw this.#unmet();
    }
    const answer = { key, size: received.size, sha256: received.sha256 };
    return reply(answer, {
      status: before === 'made' ? 201 : 200,
      headers: { etag: etagOf(received.sha256), 'x-content-sha256': received.sha256 },
    });
  }

  async #get({ key, owner }: Addressed, { method, headers, signal }: Request): Promise<Response> {
    const row = await this.#row(key);
    if (!row) throw this.#absent(key);
    const tag = etagOf(row.sha256);
    const status = readStatus(
      conditionsOf(name => headers.get(name)),
      tag,
    );
    const told = { etag: tag, 'last-modified': new Date(row.updated_at).toUTCString(), 'cache-control': 'private, no-cache' };
    if (status === 412) throw this.#unmet();
    if (status === 304) return new Response(null, { status: 304, headers: told });
    const ifRange = headers.get('if-range');
    const range = ifRange === null || ifRange === tag ? rangeOf(headers.get('range'), row.size) : 'whole';
    if (range === 'unsatisfiable')
      throw this.#ctx.problem('range_unsatisfiable', {
        detail: `The object has ${row.size} bytes.`,
        headers: { 'content-range': `bytes */${row.size}` },
      });
    const span = range === 'whole' ? undefined : range;
    const length = span ? span.end - span.start + 1 : row.size;
    const sent = {
      ...told,
      'accept-ranges': 'bytes',
      'content-type': row.content_type,
      'content-length': String(length),
      'x-content-sha256': row.sha256,
      // Bytes of somebody else's making are never a page of ours.
      'content-security-policy': "default-src 'none'; sandbox",
      ...(span ? { 'content-range': `bytes ${span.start}-${span.end}/${row.size}` } : {}),
    };
    const whole = { status: span ? 206 : 200, headers: sent };
    if (method === 'HEAD' || length === 0) return new Response(null, whole);
    return new Response(await this.#bytes({ key, owner, row, span, length, signal }), whole);
  }

  async #bytes({
    key,
    owner,
    row,
    span,
    length,
    signal,
  }: {
    key: string;
    owner: string;
    row: Row;
    span: Span | undefined;
    length: number;
    signal: AbortSignal;
  }): Promise<ReadableStream> {
    const place = this.#place(owner);
    try {
      const source = await this.#blobs.open(row.blob_id, span, signal).catch(cause => {
        throw this.#unreachable(cause);
      });
      if (!source) throw this.#unreachable(new Error(`the bytes ${row.blob_id} of ${key} are not there`));
      const onEnd = (fault: Error | undefined) => {
        place[Symbol.dispose]();
        if (fault) this.#ctx.log.error({ key, err: fault }, 'an object is damaged');
      };
      return Readable.toWeb(checkedBytes(source, { size: length, sha256: span ? undefined : row.sha256, onEnd })) as ReadableStream;
    } catch (error) {
      place[Symbol.dispose]();
      throw error;
    }
  }

  async #delete({ key }: Addressed, { headers }: Request): Promise<Response> {
    const conditions = conditionsOf(name => headers.get(name));
    const met = await this.#ctx.db.tx(async ({ sql }) => {
      const [found] = await sql<Row[]>`select blob_id, size, sha256, content_type, updated_at from objects where key = ${key} for update`;
      if (conditions.ifMatch !== null && !allowsChange(conditions, tagOf(found))) return false;
      if (found) await sql`delete from objects where key = ${key}`;
      return true;
    });
    if (!met) throw this.#unmet();
    return new Response(null, { status: 204 });
  }

  async #row(key: string): Promise<Row | undefined> {
    const [row] = await this.#ctx.db.sql<Row[]>`select blob_id, size, sha256, content_type, updated_at from objects where key = ${key}`;
    return row;
  }

  #place(owner: string): Disposable {
    const place = this.#places.admit(owner, () => undefined);
    if (!place)
      throw this.#ctx.problem('too_many_transfers', {
        detail: 'Try again in a moment.',
        headers: { 'retry-after': '2', connection: 'close' },
      });
    return place;
  }

  #unmet(): Error {
    return this.#ctx.problem('precondition_failed', {
      detail: 'Read the object again; If-Match and If-None-Match take the entity tags that were answered.',
    });
  }

  #absent(key: string): Error {
    return this.#ctx.problem('object_not_found', { detail: `Nothing is stored under ${key}.` });
  }

  #unreachable(cause: unknown): Error {
    return this.#ctx.problem('bytes_unreachable', {
      detail: 'Where the bytes are kept did not answer as it should. Try again.',
      cause,
      headers: { 'retry-after': '3' },
    });
  }
}

const tagOf = (row: Row | undefined): string | undefined => row && etagOf(row.sha256);
