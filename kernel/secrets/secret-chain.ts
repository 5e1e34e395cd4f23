import { open } from 'node:fs/promises';

/** Reads one reference of a backend; `undefined` means unresolved. */
export type SecretBackend = (path: string) => Promise<Uint8Array | undefined>;

/**
 * Resolves `<backend>://<path>` (G-K-14). Unknown backends and every failure are "unresolved": callers decide, and all but
 * notification fail closed. Values are fresh buffers that the caller zeroes after use; they never enter a log or an error.
 */
export class SecretChain {
  readonly #backends: ReadonlyMap<string, SecretBackend>;
  readonly #directory: string;

  constructor(options: {
    backends?: Readonly<Record<string, SecretBackend>>;
    environment: Readonly<Record<string, string | undefined>>;
    directory?: string;
  }) {
    const { environment } = options;
    this.#directory = options.directory ?? '/run/platform/secrets';
    this.#backends = new Map<string, SecretBackend>([
      ['file', readPrivateFile],
      ['env', async name => (environment[name] ? Buffer.from(environment[name]) : undefined)],
      ...Object.entries(options.backends ?? {}),
    ]);
  }

  /** A reference with a scheme goes to its backend; a bare name tries secrets, file, then environment. */
  async read(reference: string): Promise<Uint8Array | undefined> {
    const [, scheme, path] = /^([a-z][a-z0-9]*):\/\/(.+)$/s.exec(reference) ?? [];
    if (scheme !== undefined && path !== undefined) return this.#from(scheme, path);
    if (!/^[A-Za-z0-9_.-]{1,128}$/.test(reference)) return undefined;
    return (
      (await this.#from('secrets', reference)) ??
      (await this.#from('file', `${this.#directory}/${reference}`)) ??
      (await this.#from('env', reference))
    );
  }

  async #from(scheme: string, path: string): Promise<Uint8Array | undefined> {
    try {
      return await this.#backends.get(scheme)?.(path);
    } catch {
      // A backend's own words may hold the value or the path of a secret; "unresolved" is all a caller learns.
      return undefined;
    }
  }
}

/** A file that others can read is no secret: only 0600 and 0400 count. At most 64 KiB. */
async function readPrivateFile(path: string): Promise<Uint8Array | undefined> {
  if (!path.startsWith('/')) return undefined;
  const file = await open(path, 'r');
  try {
    const { mode, size } = await file.stat();
    if (![0o600, 0o400].includes(mode & 0o777) || size > 65_536) return undefined;
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** Hands a secret to `use` and zeroes it afterwards, whatever happens. */
export async function withSecret<T>(value: Uint8Array, use: (value: Uint8Array) => Promise<T>): Promise<T> {
  try {
    return await use(value);
  } finally {
    value.fill(0);
  }
}
