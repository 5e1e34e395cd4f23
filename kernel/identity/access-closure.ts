/** What the key-value store says about a caller right now. */
export interface LiveState {
  /** Access-model versions, in the order asked; `undefined` reads as version 0. */
  readonly versions: readonly string[];
  readonly revoked: boolean;
}

export interface AccessSources {
  /** Reads versions and revocation marks in one round trip (day-one 6). Throws when the store is away. */
  live(versionKeys: readonly string[], revocationKeys: readonly string[]): Promise<LiveState>;
  /** Effective scopes of a person in an environment, from the identity service. */
  personScopes(userId: string, envId: string): Promise<readonly string[]>;
  /** What a workload of a vertical may do; platform workloads are known from their manifests. */
  workload(name: string): Promise<{ vertical: string; scopes: readonly string[] } | undefined>;
}

interface Entry {
  readonly stamp: string;
  readonly scopes: Promise<ReadonlySet<string>>;
}

const LIMIT = 20_000;

/** Live effective scopes, cached per (environment, subject) for exactly as long as the access model's version stands still. */
export class AccessClosures {
  readonly #sources: AccessSources;
  readonly #entries = new Map<string, Entry>();

  constructor(sources: AccessSources) {
    this.#sources = sources;
  }

  live(envIds: readonly string[], revocationKeys: readonly string[]): Promise<LiveState> {
    return this.#sources.live(
      envIds.map(envId => `authz:{${envId}}`),
      revocationKeys,
    );
  }

  person(userId: string, envId: string, versions: readonly string[]): Promise<ReadonlySet<string>> {
    return this.#cached(`p ${envId} ${userId}`, versions, async () => this.#sources.personScopes(userId, envId));
  }

  workload(name: string, versions: readonly string[]): Promise<ReadonlySet<string>> {
    return this.#cached(`w ${name}`, versions, async () => (await this.#sources.workload(name))?.scopes ?? []);
  }

  #cached(key: string, versions: readonly string[], load: () => Promise<readonly string[]>): Promise<ReadonlySet<string>> {
    const stamp = versions.join('.');
    const known = this.#entries.get(key);
    if (known?.stamp === stamp) return known.scopes;
    const scopes = load().then(list => new Set(list) as ReadonlySet<string>);
    const entry = { stamp, scopes };
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    // A failed load is not an answer: the next request asks again.
    scopes.catch(() => this.#entries.get(key) === entry && this.#entries.delete(key));
    if (this.#entries.size > LIMIT) this.#entries.delete(this.#entries.keys().next().value as string);
    return scopes;
  }
}
