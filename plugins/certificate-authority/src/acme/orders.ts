import { createHash, randomBytes } from 'node:crypto';
import type { Classification, Identifier } from '../issuance/identifiers.ts';
import { RecordFolder } from '../store/record-folder.ts';
import { newestOf } from './accounts.ts';

export interface AcmeError {
  readonly type: string;
  readonly detail: string;
  readonly [extension: string]: unknown;
}
export interface Challenge {
  readonly token: string;
  readonly status: 'pending' | 'processing' | 'valid' | 'invalid';
  readonly validated?: string;
  readonly error?: AcmeError;
}
export interface Authorization {
  readonly identifier: Identifier;
  readonly wildcard: boolean;
  readonly status: 'pending' | 'valid' | 'invalid' | 'deactivated' | 'expired' | 'revoked';
  readonly challenge: Challenge;
  /** Of an external name: the upstream's authorization and challenge. */
  readonly upstream?: { readonly authorization: string; readonly challenge: string };
}
/** Where an external order stands at the upstream authority. */
export interface UpstreamOrder {
  readonly url: string;
  readonly finalize: string;
  readonly certificate?: string;
}

/** An order with everything that belongs to it, one file (G-ACME-01, G-ACME-04). `identifier` is the first one (C21). */
export interface Order {
  readonly order_id: string;
  readonly account_id: string;
  readonly classification: Classification;
  readonly status: 'pending' | 'ready' | 'processing' | 'valid' | 'invalid';
  readonly identifier: Identifier;
  readonly identifiers: readonly Identifier[];
  readonly not_before?: string;
  readonly not_after?: string;
  readonly replaces?: string;
  readonly created_at: string;
  readonly expires: string;
  readonly authorizations: readonly Authorization[];
  readonly certificate_id: string | null;
  /** SHA-256 of the request that finalize took: a repeat must carry the same (C46). */
  readonly csr_sha256?: string;
  readonly error?: AcmeError;
  readonly upstream?: UpstreamOrder;
}

const LIFE_MS = 7 * 86_400_000;
/** What ended stays to be looked at. */
const KEEP_MS = 90 * 86_400_000;

export const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
export const isWildcard = ({ value }: Identifier): boolean => value.startsWith('*.');

/** ACME orders as files, found by id, account, and the token of an upstream challenge. */
export class Orders {
  readonly #folder: RecordFolder<Order>;
  readonly #ids: string[] = [];
  readonly #byAccount = new Map<string, string[]>();
  /** Tokens that the outside fetches over port 80, with what it wants to read. */
  readonly #answers = new Map<string, string>();
  readonly #now: () => number;
  #answerTo: (token: string) => string | undefined = () => undefined;

  constructor(directory: string, now: () => number) {
    this.#folder = new RecordFolder(directory);
    this.#now = now;
  }

  /** `answerTo`: the key authorization of an upstream token. */
  load(answerTo: (token: string) => string | undefined): Promise<void> {
    this.#answerTo = answerTo;
    return this.#folder.load(order => {
      this.#index(order);
      this.#publish(order);
    });
  }

  get count(): number {
    return this.#ids.length;
  }

  /** What is there, its state as the time makes it: what ran out is invalid. */
  async get(id: string): Promise<Order | undefined> {
    const order = await this.#folder.get(id);
    return order && this.#expired(order);
  }

  async put(order: Order): Promise<void> {
    const known = (await this.#folder.get(order.order_id)) !== undefined;
    await this.#folder.put(order.order_id, order);
    if (!known) this.#index(order);
    this.#publish(order);
  }

  /** The text behind `/.well-known/acme-challenge/{token}`. */
  answerTo(token: string): string | undefined {
    return this.#answers.get(token);
  }

  /** Newest first, of one account. */
  async ofAccount(accountId: string, limit: number, before?: string): Promise<Order[]> {
    const found = await newestOf(this.#byAccount.get(accountId) ?? [], this.#folder, limit, before);
    return found.map(order => this.#expired(order));
  }

  /** Newest first. */
  async newest(limit: number, before: string | undefined, fits: (order: Order) => boolean): Promise<Order[]> {
    return (await newestOf(this.#ids, this.#folder, limit, before, order => fits(this.#expired(order)))).map(order => this.#expired(order));
  }

  /** Forgets what ended long ago. Its certificate stays. */
  async forgetOld(): Promise<void> {
    const until = this.#now() - KEEP_MS;
    for (const id of [...this.#ids]) {
      const order = await this.#folder.get(id);
      if (order && Date.parse(order.created_at) > until) break;
      await this.#folder.remove(id);
      this.#ids.splice(this.#ids.indexOf(id), 1);
      if (!order) continue;
      const own = this.#byAccount.get(order.account_id);
      if (own?.[0] === id) own.shift();
      for (const { challenge } of order.authorizations) this.#answers.delete(challenge.token);
    }
  }

  expiry(): string {
    return new Date(this.#now() + LIFE_MS).toISOString();
  }

  static token(): string {
    return randomBytes(24).toString('base64url');
  }

  #index({ order_id: id, account_id: account }: Order): void {
    this.#ids.push(id);
    const own = this.#byAccount.get(account);
    if (own) own.push(id);
    else this.#byAccount.set(account, [id]);
  }

  #publish(order: Order): void {
    if (order.classification !== 'external') return;
    for (const { challenge } of order.authorizations) {
      const answer = order.status === 'pending' || order.status === 'processing' ? this.#answerTo(challenge.token) : undefined;
      if (answer === undefined) this.#answers.delete(challenge.token);
      else this.#answers.set(challenge.token, answer);
    }
  }

  #expired(order: Order): Order {
    if (order.status === 'valid' || order.status === 'invalid' || Date.parse(order.expires) > this.#now()) return order;
    return {
      ...order,
      status: 'invalid',
      error: { type: 'urn:ietf:params:acme:error:malformed', detail: 'The order has expired. Make a new one.' },
      authorizations: order.authorizations.map(authorization =>
        authorization.status === 'valid'
          ? { ...authorization, status: 'expired' as const }
          : { ...authorization, status: 'invalid' as const },
      ),
    };
  }
}
