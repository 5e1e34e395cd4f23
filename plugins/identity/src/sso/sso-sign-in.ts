import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { type RequestOf, reply, type Sealed, type SealedBox } from '@platform/sdk';
import type { JWTPayload } from 'jose';
import type { Arrival } from '../account/arrival.ts';
import { hashOf, type OAuthContext } from '../account/step-tokens.ts';
import type { Attempts } from '../sign-in/attempts.ts';
import { cookieOf, pageCookie } from '../sign-in/request-cookies.ts';
import type { Contract, Ctx, IdentityTx } from '../context.ts';
import type { PageGuard } from '../sign-in/page-guard.ts';
import type { People } from '../people/people.ts';
import type { Realm, Realms } from '../realms.ts';
import type { UpstreamProtocol } from './upstream-protocol.ts';
import { redirectUriOf, type UpstreamProvider, type UpstreamProviders } from './upstream-providers.ts';

interface Parts {
  readonly arrival: Arrival;
  readonly attempts: Attempts;
  readonly box: SealedBox;
  readonly guard: PageGuard;
  readonly people: People;
  readonly protocol: UpstreamProtocol;
  readonly providers: UpstreamProviders;
  readonly realms: Realms;
}
interface Flow {
  readonly browser_hash: Uint8Array;
  readonly secrets: Sealed;
  readonly context: OAuthContext;
}

const FLOW_S = 600;
const COOKIE = '__Host-platform-sso';

/**
 * Signing in with the provider of the organization: code with PKCE, a state and a nonce that count once, bound to this browser. The
 * provider proves one factor; a second one that is set up here is still asked for.
 */
export class SsoSignIn {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async begin({ body, headers, hostname, ip, signal }: RequestOf<Contract, 'beginSso'>) {
    const { attempts, box, guard, protocol, providers, realms } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    await attempts.slow(undefined, ip);
    const provider = await providers.require(realm);
    const { authorization_endpoint } = await protocol.discover(provider.issuer);
    const [state = '', nonce = '', verifier = '', browser = ''] = Array.from({ length: 4 }, () => randomBytes(32).toString('base64url'));
    await this.#ctx.db.sql`
      insert into upstream_flows (state_hash, browser_hash, env_id, secrets, context, expires_at)
      values (${hashOf(state)}, ${hashOf(browser)}, ${realm.env_id},
        ${this.#ctx.db.sql.json(box.seal(purposeOf(realm), JSON.stringify([nonce, verifier, provider.issuer])))},
        ${this.#ctx.db.sql.json(body.oauth)}, now() + make_interval(secs => ${FLOW_S}))`;
    const url = new URL(authorization_endpoint);
    const query = {
      response_type: 'code',
      client_id: provider.client_id,
      redirect_uri: redirectUriOf(realms, realm),
      scope: 'openid email profile',
      state,
      nonce,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      // Nobody changes the own account in a browser that was left open: the provider asks anew, and says when it did (Core 3.1.2.1).
      ...(body.oauth.return_to?.startsWith('/account') ? { prompt: 'login', max_age: '0' } : {}),
      ...(body.oauth.ui_locales ? { ui_locales: body.oauth.ui_locales } : {}),
    };
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return reply(
      { redirect_to: url.href },
      { headers: { 'set-cookie': pageCookie(COOKIE, browser, { sameSite: 'strict', maxAge: FLOW_S }) } },
    );
  }

  async finish({ body, headers, hostname, ip, signal }: RequestOf<Contract, 'finishSso'>) {
    const { arrival, attempts, box, guard, people, protocol, providers, realms } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    await attempts.slow(undefined, ip);
    const provider = await providers.require(realm);
    const flow = await this.#use(realm, body.state, cookieOf(headers, COOKIE));
    const [nonce, verifier, issuer] = JSON.parse(box.open(purposeOf(realm), flow.secrets) ?? '[]') as string[];
    if (!nonce || !verifier || issuer !== provider.issuer) throw this.#expired();
    const discovered = await protocol.discover(provider.issuer);
    // RFC 9207: an answer of another provider is not carried to this one.
    const named =
      body.iss === undefined ? discovered.authorization_response_iss_parameter_supported !== true : body.iss === provider.issuer;
    if (!named || !body.code || body.error) throw this.#refused();
    const secret = await providers.secretOf(realm);
    const claims = await protocol.redeem(
      discovered,
      { code: body.code, verifier, nonce, clientId: provider.client_id, secret, redirectUri: redirectUriOf(realms, realm) },
      signal,
    );
    if (!claims?.sub) throw this.#refused();
    const userId = await this.#accountOf(realm, provider, claims);
    const person = await people.withPassword(userId);
    if (person?.status !== 'active') throw this.#refused();
    return arrival.proceed(realm, person, {
      oauth: flow.context,
      headers,
      amr: ['fed'],
      provenAt: typeof claims['auth_time'] === 'number' ? Math.max(0, Math.floor(claims['auth_time'])) : undefined,
    });
  }

  /** The request that sets the mark has used it; of any number at once that is one (H-13). Only the browser that began goes on. */
  async #use({ env_id }: Realm, state: string, browser: string | undefined): Promise<Flow> {
    const [flow] = await this.#ctx.db.sql<Flow[]>`
      update upstream_flows set used_at = now() where state_hash = ${hashOf(state)} and env_id = ${env_id} and used_at is null
        and expires_at > now()
      returning browser_hash, secrets, context`;
    if (!flow || !browser || !timingSafeEqual(Buffer.from(flow.browser_hash), hashOf(browser))) throw this.#expired();
    return flow;
  }

  /** Known by issuer and subject; else by an address that both sides confirmed; else, where it is allowed, a new account. */
  async #accountOf(
    realm: Realm,
    { issuer, allow_sign_up }: UpstreamProvider,
    { sub = '', email, email_verified, name }: JWTPayload,
  ): Promise<string> {
    const { sql } = this.#ctx.db;
    const [known] = await sql<
      { user_id: string }[]
    >`select user_id from upstream_identities where env_id = ${realm.env_id} and issuer = ${issuer} and subject = ${sub}`;
    if (known) return known.user_id;
    const confirmed =
      email_verified === true && typeof email === 'string' && /^[^@\s]+@[^@\s]+$/.test(email) && email.length <= 320 ? email : undefined;
    if (!confirmed) throw this.#noAccount('Your provider has not confirmed your e-mail address.');
    return this.#ctx.db.tx(async tx => {
      const person = await this.#parts.people.byEmail(realm.env_id, confirmed, tx.sql);
      // Somebody may have opened it in advance with the address of another: only the owner of the address has confirmed it.
      if (person && !person.email_verified)
        throw this.#noAccount('An account with your address waits for its confirmation. Confirm it first.');
      if (!person && !allow_sign_up) throw this.#noAccount('Ask somebody who is already there to invite you.');
      const userId = person?.user_id ?? (await this.#open(tx, realm, confirmed, typeof name === 'string' ? name : null));
      await tx.sql`insert into upstream_identities ${tx.sql.row({ env_id: realm.env_id, issuer, subject: sub, user_id: userId })}
        on conflict do nothing`;
      await tx.audit({ action: 'auth.sso.linked', envId: realm.env_id, resource: { type: 'user', id: userId }, details: { issuer } });
      return userId;
    });
  }

  async #open(tx: IdentityTx, realm: Realm, email: string, name: string | null): Promise<string> {
    const userId = this.#ctx.platform.newId();
    const row = {
      user_id: userId,
      env_id: realm.env_id,
      email,
      email_ci: email.toLowerCase(),
      email_verified: true,
      display_name: name?.trim().slice(0, 120) || null,
    };
    const [made] = await tx.sql<object[]>`insert into users ${tx.sql.row(row)} on conflict (env_id, email_ci) do nothing returning 1`;
    if (!made) throw this.#expired();
    await tx.emit('platform:auth:user:created', realm.env_id, { user_id: userId, env_id: realm.env_id });
    await tx.audit({ action: 'auth.user.signed_up', envId: realm.env_id, resource: { type: 'user', id: userId }, details: { sso: true } });
    return userId;
  }

  #noAccount(detail: string) {
    return this.#ctx.problem('sso_no_account', { detail });
  }
  #expired() {
    return this.#ctx.problem('token_expired', { detail: 'Begin to sign in again.' });
  }
  #refused() {
    return this.#ctx.problem('sso_refused', { detail: 'Begin to sign in again, or use your password.' });
  }
}

const purposeOf = ({ env_id }: Realm) => `upstream-flow:${env_id}`;
