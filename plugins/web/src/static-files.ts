import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { admitsCoding } from '@platform/sdk';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
};
const COMPRESSED = new Set(['.html', '.js', '.css', '.svg', '.json']);

interface StaticFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly brotli: Uint8Array<ArrayBuffer> | undefined;
  readonly type: string;
  readonly etag: string;
  readonly immutable: boolean;
}

/**
 * The files of a built bundle, read and compressed once; paths outside it do not exist. No library: sirv names versions by size and time,
 * which differ between the processes of one build, and wants its compressed files on the disk.
 */
export class StaticFiles {
  readonly #files = new Map<string, StaticFile>();

  constructor(directory: string) {
    for (const path of walk(directory)) {
      const bytes = Uint8Array.from(readFileSync(path));
      const end = extname(path);
      const name = `/${relative(directory, path).split(sep).join('/')}`;
      this.#files.set(name, {
        bytes,
        brotli: COMPRESSED.has(end) ? Uint8Array.from(brotliCompressSync(bytes)) : undefined,
        type: TYPES[end] ?? 'application/octet-stream',
        etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
        // Bundled names carry a hash of their content.
        immutable: name.startsWith('/assets/'),
      });
    }
  }

  get size(): number {
    return this.#files.size;
  }

  respond(path: string, request: Request): Response | undefined {
    const file = this.#files.get(path);
    if (!file) return undefined;
    const headers = new Headers({
      'content-type': file.type,
      etag: file.etag,
      vary: 'accept-encoding',
      'cache-control': file.immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
      'x-content-type-options': 'nosniff',
    });
    if (request.headers.get('if-none-match') === file.etag) return new Response(null, { status: 304, headers });
    const compressed = admitsCoding(request.headers.get('accept-encoding') ?? undefined, 'br') ? file.brotli : undefined;
    if (compressed) headers.set('content-encoding', 'br');
    const body = compressed ?? file.bytes;
    headers.set('content-length', String(body.byteLength));
    return new Response(request.method === 'HEAD' ? null : body, { headers });
  }
}

function* walk(directory: string): Generator<string> {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    if (statSync(path).isDirectory()) yield* walk(path);
    else yield path;
  }
}
