import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Readable } from 'node:stream';
import type { Blobs, Received, Span, StoredBlob } from './blobs.ts';
import { type Credentials, EMPTY_HASH, encoded, queryText, signed } from './signature.ts';

export interface Bucket {
  readonly origin: URL;
  /** Bucket and folder, each segment encoded, without a slash at the end. */
  readonly path: string;
  /** Begins every name in the bucket. */
  readonly folder: string;
  readonly region: string;
}
interface Asked {
  readonly method: 'GET' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly file?: Received;
  readonly signal?: AbortSignal | undefined;
}

/** Without a byte for so long, the provider is taken for gone. */
const QUIET_MS = 30_000;
const TRIES = 3;
const MAX_LISTING = 4 * 1_048_576;

/** The provider did not do what it was asked. */
export class BucketFault extends Error {
  readonly status: number;
  constructor(status: number, said: string) {
    super(`the bucket answered ${status}: ${said.slice(0, 300)}`);
    this.status = status;
  }
}

/** Bytes in an S3 bucket, by signed requests (facts on S3, section 5). */
export class S3Blobs implements Blobs, AsyncDisposable {
  readonly kind = 's3';
  readonly #bucket: Bucket;
  readonly #credentials: () => Promise<Credentials>;
  readonly #agent: HttpAgent;

  constructor(bucket: Bucket, credentials: () => Promise<Credentials>) {
    this.#bucket = bucket;
    this.#credentials = credentials;
    const options = { keepAlive: true, maxSockets: 64, maxFreeSockets: 8 };
    this.#agent = bucket.origin.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
  }

  async keep(blobId: string, received: Received): Promise<void> {
    const answer = await this.#ask({
      method: 'PUT',
      path: this.#pathOf(blobId),
      headers: { 'content-length': String(received.size), 'if-none-match': '*' },
      file: received,
    });
    const said = await textOf(answer);
    // An id is new: who finds it there wrote it a moment ago, in a try whose answer was lost.
    if (answer.statusCode !== 200 && answer.statusCode !== 412) throw new BucketFault(answer.statusCode ?? 0, said);
    await rm(received.path, { force: true });
  }

  async open(blobId: string, span: Span | undefined, signal?: AbortSignal): Promise<Readable | undefined> {
    const answer = await this.#ask({
      method: 'GET',
      path: this.#pathOf(blobId),
      headers: span ? { range: `bytes=${span.start}-${span.end}` } : {},
      signal,
    });
    if (answer.statusCode === (span ? 206 : 200)) return answer;
    const said = await textOf(answer);
    if (answer.statusCode === 404) return undefined;
    throw new BucketFault(answer.statusCode ?? 0, said);
  }

  async delete(blobId: string): Promise<void> {
    const answer = await this.#ask({ method: 'DELETE', path: this.#pathOf(blobId) });
    const said = await textOf(answer);
    if (![200, 204, 404].includes(answer.statusCode ?? 0)) throw new BucketFault(answer.statusCode ?? 0, said);
  }

  async *list(signal: AbortSignal): AsyncIterable<StoredBlob> {
    const { folder } = this.#bucket;
    for (let token: string | undefined; ; ) {
      const answer = await this.#ask({
        method: 'GET',
        path: this.#bucket.path,
        query: {
          'list-type': '2',
          'max-keys': '1000',
          ...(folder ? { prefix: folder } : {}),
          ...(token ? { 'continuation-token': token } : {}),
        },
        signal,
      });
      const said = await textOf(answer);
      if (answer.statusCode !== 200) throw new BucketFault(answer.statusCode ?? 0, said);
      for (const [, entry = ''] of said.matchAll(/<Contents>([\s\S]*?)<\/Contents>/g)) {
        const name = elementOf(entry, 'Key').slice(folder.length);
        if (/^[0-9a-f-]{36}$/.test(name))
          yield { blobId: name, size: Number(elementOf(entry, 'Size')), modifiedAt: Date.parse(elementOf(entry, 'LastModified')) };
      }
      token = elementOf(said, 'NextContinuationToken');
      if (!token || signal.aborted) return;
    }
  }

  #pathOf(blobId: string): string {
    const { path, folder } = this.#bucket;
    return `${path}/${folder.split('/').map(encoded).join('/')}${blobId}`;
  }

  /** Every request may be sent again: an id is written once, and reads and deletes change nothing the second time. */
  async #ask(asked: Asked): Promise<IncomingMessage> {
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await this.#once(asked);
        if ((answer.statusCode ?? 0) < 500 || attempt === TRIES) return answer;
        await textOf(answer);
      } catch (error) {
        if (attempt === TRIES || asked.signal?.aborted) throw error;
      }
      await delay(200 * attempt, undefined, { signal: asked.signal });
    }
  }

  async #once({ method, path, query, headers = {}, file, signal }: Asked): Promise<IncomingMessage> {
    const { origin, region } = this.#bucket;
    const bodyHash = file?.sha256 ?? EMPTY_HASH;
    const all = signed(
      { method, host: origin.host, path, ...(query ? { query } : {}), headers, bodyHash },
      await this.#credentials(),
      region,
      new Date(),
    );
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const send = origin.protocol === 'https:' ? httpsRequest : httpRequest;
    const outgoing = send({
      host: origin.hostname,
      ...(origin.port ? { port: origin.port } : {}),
      method,
      path: query ? `${path}?${queryText(query)}` : path,
      headers: all,
      agent: this.#agent,
      timeout: QUIET_MS,
      ...(signal ? { signal } : {}),
    });
    outgoing.once('response', resolve).once('error', reject);
    outgoing.on('timeout', () => outgoing.destroy(new Error(`the bucket said nothing for ${QUIET_MS} ms`)));
    if (file) pipeline(createReadStream(file.path), outgoing).catch(reject);
    else outgoing.end();
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
  }
}

const elementOf = (xml: string, name: string): string =>
  new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]?.replaceAll('&amp;', '&') ?? '';

async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_LISTING) throw new BucketFault(answer.statusCode ?? 0, 'more than a listing may have');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** `https://host/bucket/folder?region=…`; `undefined` where it is not the address of a bucket. */
export function bucketOf(url: string, production: boolean): Bucket | undefined {
  const parsed = URL.parse(url);
  if (!parsed || !(parsed.protocol === 'https:' || (parsed.protocol === 'http:' && !production)) || parsed.username || parsed.password)
    return undefined;
  const [bucket, ...folders] = parsed.pathname.split('/').filter(Boolean).map(decodeURIComponent);
  if (!bucket) return undefined;
  return {
    origin: new URL(parsed.origin),
    path: `/${encoded(bucket)}`,
    folder: folders.length > 0 ? `${folders.join('/')}/` : '',
    region: parsed.searchParams.get('region') ?? 'us-east-1',
  };
}
