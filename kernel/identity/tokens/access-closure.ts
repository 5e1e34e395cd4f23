import { BoundedMap } from '@platform/sdk';
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
  readonly access: Promise<Access>;
}

/** What somebody may do, and for a workload whose it is. */
export interface Access {
  readonly scopes: ReadonlySet<string>;
  readonly vertical: string | undefined;
}

const LIMIT = 20_000;

/** Live effective scopes, cached per (environment, subject) for exactly as long as the access model's version stands still. */
export class AccessClosures {
  readonly #sources: AccessSources;
  readonly #entries = new BoundedMap<string, Entry>(LIMIT);

  constructor(sources: AccessSources) {
    this.#sources = sources;
  }

  /**
   * Versions of the environments, and of the person where there is one: a change that is one person's alone leaves everybody else's closure
   * standing.
   */
  live(envIds: readonly string[], revocationKeys: readonly string[], userId?: string): Promise<LiveState> {
    return this.#sources.live(
      [...envIds.map(envId => `authz:{${envId}}`), ...(userId === undefined ? [] : [`authz:person:{${userId}}`])],
      revocationKeys,
    );
  }

  async person(userId: string, envId: string, versions: readonly string[]): Promise<ReadonlySet<string>> {
    const { scopes } = await this.#cached(`p ${envId} ${userId}`, versions, async () => ({
      scopes: new Set(await this.#sources.personScopes(userId, envId)),
      vertical: undefined,
    }));
    return scopes;
  }

  workload(name: string, versions: readonly string[]): Promise<Access> {
    return this.#cached(`w ${name}`, versions, async () => {
      const found = await this.#sources.workload(name);
      return { scopes: new Set(found?.scopes ?? []), vertical: found?.vertical };
    });
  }

  #cached(key: string, versions: readonly string[], load: () => Promise<Access>): Promise<Access> {
    const stamp = versions.join('.');
    const known = this.#entries.get(key);
    if (known?.stamp === stamp) return known.access;
    const entry = { stamp, access: load() };
    this.#entries.set(key, entry);
    // A failed load is not an answer: the next request asks again.
    entry.access.catch(() => this.#entries.get(key) === entry && this.#entries.delete(key));
    return entry.access;
  }
}
