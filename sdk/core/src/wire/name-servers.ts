import { Resolver } from 'node:dns/promises';

const QUERY_MS = 2_000;
const TRIES = 2;
/** However many servers there are to try, and questions to ask. */
const LOOK_MS = 10_000;
/** The name is not there, or has no such record: an answer, and not a failure to get one. */
const ABSENT = new Set(['ENOTFOUND', 'ENODATA']);

/** A question that got no answer: that says nothing about the name. */
export interface UnansweredQuestion {
  readonly question: string;
  readonly code: string;
}

/**
 * Questions to DNS that belong together and end together. What is not there is an empty list; what was not answered stands in
 * `unanswered`.
 */
export class NameLook {
  readonly unanswered: UnansweredQuestion[] = [];
  readonly #resolver: Resolver;

  constructor(resolver: Resolver) {
    this.#resolver = resolver;
  }

  /** The texts of a name, the parts of each in one. */
  txt(name: string): Promise<string[]> {
    return this.#ask(`TXT ${name}`, async () => (await this.#resolver.resolveTxt(name)).map(parts => parts.join('')));
  }

  /** Where a name leads, in lower case and without the last dot. */
  cname(name: string): Promise<string[]> {
    return this.#ask(`CNAME ${name}`, async () =>
      (await this.#resolver.resolveCname(name)).map(alias => alias.toLowerCase().replace(/\.$/, '')),
    );
  }

  /** Addresses of both kinds. */
  async addresses(name: string): Promise<string[]> {
    const both = await Promise.all([
      this.#ask(`A ${name}`, () => this.#resolver.resolve4(name)),
      this.#ask(`AAAA ${name}`, () => this.#resolver.resolve6(name)),
    ]);
    return both.flat();
  }

  async #ask(question: string, answer: () => Promise<string[]>): Promise<string[]> {
    try {
      return await answer();
    } catch (error) {
      const { code = 'EFAILED' } = error as { code?: string };
      if (!ABSENT.has(code)) this.unanswered.push({ question, code });
      return [];
    }
  }
}

/** The name servers that proofs of domains are looked up at. */
export class NameServers {
  readonly #servers: readonly string[];

  /** Addresses, separated by commas; the system's when empty. */
  constructor(servers: string) {
    this.#servers = servers.split(',').flatMap(server => server.trim() || []);
  }

  /** By a resolver of its own, so that what an earlier question was told does not answer this one; ten seconds for all of its questions. */
  look(): NameLook {
    const resolver = new Resolver({ timeout: QUERY_MS, tries: TRIES });
    if (this.#servers.length > 0) resolver.setServers(this.#servers);
    AbortSignal.timeout(LOOK_MS).addEventListener('abort', () => resolver.cancel(), { once: true });
    return new NameLook(resolver);
  }
}
