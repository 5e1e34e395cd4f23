import type { RegisteredClient } from '../clients/registered-clients.ts';
import type { Ctx } from '../context.ts';
import { fetchOutside } from '../outside.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';

const MOST = 200;
const ASSERTION_S = 60;

/** An account as its keeper describes it. */
export interface OfferedAccount {
  readonly id: string;
  readonly name: string;
  readonly mask: string;
  readonly type: string;
}

/**
 * Reads the accounts a person can share. No document says who keeps them, so the client's registration does (`consent_accounts_uri`): it is
 * asked over HTTPS with a short assertion that names the person, signed ES256 by the realm's issuer.
 */
export class AccountSource {
  readonly #ctx: Ctx;
  readonly #keys: SigningKeys;

  constructor(ctx: Ctx, keys: SigningKeys) {
    this.#ctx = ctx;
    this.#keys = keys;
  }

  /** `undefined` when the client names no source. */
  async read(
    client: RegisteredClient,
    about: { issuer: string; userId: string; flow: string },
    signal: AbortSignal,
  ): Promise<readonly OfferedAccount[] | undefined> {
    const source = client.metadata.consent_accounts_uri;
    if (source === undefined) return undefined;
    const url = new URL(source);
    url.searchParams.set('consent_flow', about.flow);
    const now = Math.floor(Date.now() / 1_000);
    const assertion = this.#keys.token(
      {
        iss: about.issuer,
        sub: about.userId,
        aud: url.origin,
        iat: now,
        exp: now + ASSERTION_S,
        jti: this.#ctx.platform.newId(),
        client_id: client.client_id,
        env_id: client.env_id,
      },
      'ES256',
      'JWT',
    );
    try {
      return accountsOf(await this.#ask(url, assertion, signal));
    } catch (cause) {
      throw this.#ctx.problem('accounts_unavailable', { detail: 'Try again in a moment, or go back to the application.', cause });
    }
  }

  async #ask(url: URL, assertion: string, signal: AbortSignal): Promise<string> {
    const { status, text } = await fetchOutside(this.#ctx, url, {
      headers: { accept: 'application/json', authorization: `Bearer ${assertion}` },
      signal,
    });
    if (status !== 200) throw new Error(`the source of accounts answered ${status}`);
    return text;
  }
}

function accountsOf(text: string): OfferedAccount[] {
  const { accounts } = JSON.parse(text) as { accounts?: unknown };
  if (!Array.isArray(accounts) || accounts.length > MOST) throw new Error('the source of accounts answered no list');
  const offered = accounts.map((each: unknown) => {
    const { id, name, mask = '', type = '' } = (each ?? {}) as Record<string, unknown>;
    if (![id, name, mask, type].every(member => typeof member === 'string' && member.length <= 200) || id === '')
      throw new Error('the source of accounts answered something that is no account');
    return { id, name, mask, type } as OfferedAccount;
  });
  if (new Set(offered.map(({ id }) => id)).size !== offered.length) throw new Error('the source of accounts answered one id twice');
  return offered;
}
