import { lookup } from 'node:dns';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import type { RegisteredClient } from '../clients/registered-clients.ts';
import type { Ctx } from '../context.ts';
import type { SigningKeys } from '../signing-keys.ts';

const TIMEOUT_MS = 5_000;
const LIMIT = 262_144;
const MOST = 200;
const ASSERTION_S = 60;

/** An account as its keeper describes it. */
export interface OfferedAccount {
  readonly id: string;
  readonly name: string;
  readonly mask: string;
  readonly type: string;
}

const PRIVATE = new BlockList();
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  PRIVATE.addSubnet(net, prefix);
for (const [net, prefix] of [
  ['::', 96],
  ['64:ff9b::', 96],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  PRIVATE.addSubnet(net, prefix, 'ipv6');

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
  async read(client: RegisteredClient, about: { issuer: string; userId: string; flow: string }, signal: AbortSignal): Promise<readonly OfferedAccount[] | undefined> {
    const source = client.metadata.consent_accounts_uri;
    if (source === undefined) return undefined;
    const url = new URL(source);
    url.searchParams.set('consent_flow', about.flow);
    const now = Math.floor(Date.now() / 1_000);
    const assertion = this.#keys.token(
      { iss: about.issuer, sub: about.userId, aud: url.origin, iat: now, exp: now + ASSERTION_S, jti: this.#ctx.platform.newId(), client_id: client.client_id, env_id: client.env_id },
      'ES256',
      'JWT',
    );
    try {
      return accountsOf(await this.#fetch(url, assertion, AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])));
    } catch (cause) {
      throw this.#ctx.problem('accounts_unavailable', { detail: 'Try again in a moment, or go back to the application.', cause });
    }
  }

  #fetch(url: URL, assertion: string, signal: AbortSignal): Promise<string> {
    const guarded = this.#ctx.platform.production;
    const bare = url.hostname.replace(/^\[|\]$/g, '');
    if (guarded && isIP(bare) && isPrivate(bare)) throw new Error('the source of accounts is a private address');
    return new Promise((resolve, reject) => {
      const options = { signal, headers: { accept: 'application/json', authorization: `Bearer ${assertion}` }, ...(guarded ? { lookup: publicOnly } : {}) };
      const request: ClientRequest = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options, response => bodyOf(response).then(resolve, reject));
      request.on('error', reject);
      request.end();
    });
  }
}

const isPrivate = (address: string) => PRIVATE.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** A name that leads inside is not followed: what a stranger registered must not reach the platform's own network. */
const publicOnly: LookupFunction = (hostname, options, done) =>
  lookup(hostname, { ...options, all: true }, (error, found) => {
    const [first] = found ?? [];
    if (error || !first) return done(error ?? new Error('no address'), '', 0);
    if (found.some(({ address }) => isPrivate(address))) return done(new Error('the source of accounts is a private address'), '', 0);
    if (options.all) (done as unknown as (error: null, addresses: typeof found) => void)(null, found);
    else done(null, first.address, first.family);
  });

async function bodyOf(response: IncomingMessage): Promise<string> {
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`the source of accounts answered ${response.statusCode}`);
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LIMIT) throw new Error('the source of accounts answered too much');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function accountsOf(text: string): OfferedAccount[] {
  const { accounts } = JSON.parse(text) as { accounts?: unknown };
  if (!Array.isArray(accounts) || accounts.length > MOST) throw new Error('the source of accounts answered no list');
  const offered = accounts.map((each: unknown) => {
    const { id, name, mask = '', type = '' } = (each ?? {}) as Record<string, unknown>;
    if (![id, name, mask, type].every(member => typeof member === 'string' && member.length <= 200) || id === '') throw new Error('the source of accounts answered something that is no account');
    return { id, name, mask, type } as OfferedAccount;
  });
  if (new Set(offered.map(({ id }) => id)).size !== offered.length) throw new Error('the source of accounts answered one id twice');
  return offered;
}
