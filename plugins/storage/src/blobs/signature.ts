import { createHash, createHmac } from 'node:crypto';

export interface Credentials {
  readonly id: string;
  readonly secret: string;
}
export interface Signable {
  readonly method: string;
  readonly host: string;
  /** Encoded as it is sent. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** SHA-256 of the body, in hex. */
  readonly bodyHash: string;
}

const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
export const EMPTY_HASH = sha256('');

/** Percent-encoding as the signature wants it: everything but the unreserved characters (RFC 3986, 2.3). */
export const encoded = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
export const queryText = (query: Readonly<Record<string, string>> = {}): string =>
  Object.entries(query)
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join('&');

/** The headers of a request that is signed by Signature Version 4 for S3 (AWS General Reference, «Signing requests»). */
export function signed(
  { method, host, path, query, headers = {}, bodyHash }: Signable,
  { id, secret }: Credentials,
  region: string,
  at: Date,
): Record<string, string> {
  const time = `${at.toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
  const day = time.slice(0, 8);
  const scope = `${day}/${region}/s3/aws4_request`;
  const sent: Record<string, string> = { ...headers, host, 'x-amz-content-sha256': bodyHash, 'x-amz-date': time };
  const names = Object.keys(sent).sort();
  const canonical = [
    method,
    path,
    queryText(query),
    ...names.map(name => `${name}:${sent[name]?.trim()}`),
    '',
    names.join(';'),
    bodyHash,
  ].join('\n');
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secret}`);
  const signature = createHmac('sha256', key)
    .update(['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n'))
    .digest('hex');
  return { ...sent, authorization: `AWS4-HMAC-SHA256 Credential=${id}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}` };
}
