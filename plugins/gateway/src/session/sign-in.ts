import { createHash, randomBytes } from 'node:crypto';
import { type Limit, networkOf, type RawExchange, type Sealed, type SealedBox } from '@platform/sdk';
import type { Apps, Visit } from '../apps/apps.ts';
import type { App } from '../apps/app.ts';
import type { Ctx } from '../context.ts';
import { PKCE_COOKIE, pkceCookie, readCookie, SESSION_COOKIE, sessionCookie } from './cookies.ts';
import { visitOf } from '../door.ts';
import { same } from './guard.ts';
import { claimsOf, type Issuer, isRefusal, type TokenAnswer } from '../issuer.ts';
import { returnPath } from './return-path.ts';
import type { Sessions } from './sessions.ts';

interface Started {
  readonly verifier: string;
  readonly state: string;
  readonly nonce: string;
  readonly return_to: string;
  readonly at: number;
}

const SIGN_INS_PER_MINUTE = 30;
const STARTED_MS = 300_000;
/** The invitation that somebody follows, by the SHA-256 of its token: the sign-in page says who invites. */
const INVITATION = /^[A-Za-z0-9_-]{43}$/;
const secret = (): string => randomBytes(32).toString('base64url');

/**
 * Authorization code with PKCE and a pushed request, done by the gateway for the browser (GWY-004; G-BFF-01). Every doubt ends without a
 * session.
 */
export class SignIn {
  readonly #ctx: Ctx;
  readonly #apps: Apps;
  readonly #issuer: Issuer;
  readonly #sessions: Sessions;
  readonly #box: SealedBox;
  readonly #limit: Limit;

  constructor(ctx: Ctx, { apps, issuer, sessions }: { apps: Apps; issuer: Issuer; sessions: Sessions }) {
    this.#ctx = ctx;
    this.#apps = apps;
    this.#issuer = issuer;
    this.#sessions = sessions;
    this.#box = ctx.keys.sessions;
    this.#limit = ctx.limit({ name: 'login', max: SIGN_INS_PER_MINUTE, seconds: 60 });
  }

  login(exchange: RawExchange, extra: Headers): Promise<Response> {
    return this.#start(exchange, extra, {});
  }

  async signUp(exchange: RawExchange, extra: Headers): Promise<Response> {
    const app = await this.#app(visitOf(exchange));
    if (!app.allowSignup) throw this.#ctx.problem('signup_disabled', { detail: 'Ask somebody who is already there to invite you.' });
    return this.#start(exchange, extra, { screen_hint: 'signup' });
  }

  /** Where the browser comes back. The verifier cookie is used up, whatever happens (GWY-026). */
  async callback(exchange: RawExchange, extra: Headers): Promise<Response> {
    extra.append('set-cookie', pkceCookie(''));
    const visit = visitOf(exchange);
    const query = new URL(exchange.request.url).searchParams;
    const app = await this.#app(visit);
    const started = this.#started(visit);
    if (!started || !same(query.get('state') ?? '', started.state))
      throw this.#ctx.problem('state_mismatch', { detail: 'Start again from the application.' });
    if (query.get('iss') !== this.#issuer.identifier(app.issuerHost))
      throw this.#ctx.problem('sign_in_refused', {
        detail: 'The answer names another issuer.',
        cause: new Error(`iss ${query.get('iss')}`),
      });
    const refused = query.get('error');
    if (refused)
      throw this.#ctx.problem('sign_in_refused', {
        detail:
          refused === 'access_denied' ? 'The sign-in was cancelled or denied.' : `The identity service answered ${refused.slice(0, 60)}.`,
      });
    const tokens = await this.#exchange(app, visit, { code: query.get('code') ?? '', verifier: started.verifier });
    const record = await this.#open(app, visit, tokens, started.nonce);
    await this.#endPrevious(visit);
    const { cookie } = record;
    extra.append('set-cookie', this.#cookie(visit, cookie, this.#ctx.config.absoluteTtlS));
    return redirect(this.#apps.originOf(visit) + started.return_to);
  }

  /** A cookie that takes the session's away. */
  clearing(visit: Visit): string {
    return this.#cookie(visit, '', 0);
  }

  async #start(exchange: RawExchange, extra: Headers, more: Record<string, string>): Promise<Response> {
    const visit = visitOf(exchange);
    await this.#limit.require(networkOf(visit.ip));
    const app = await this.#app(visit);
    const query = new URL(exchange.request.url).searchParams;
    const returnTo = returnPath(query.get('return_to'), this.#apps.originOf(visit));
    if (returnTo === undefined) throw this.#ctx.problem('bad_return_to', { detail: 'Use a path that starts with one slash.' });
    const started: Started = {
      verifier: secret(),
      state: secret(),
      nonce: secret(),
      return_to: returnTo,
      at: this.#ctx.clock.now().getTime(),
    };
    const passed: Record<string, string> = Object.fromEntries(
      ['prompt', 'login_hint'].flatMap(name => (query.get(name) ? [[name, (query.get(name) as string).slice(0, 320)]] : [])),
    );
    const invitation = query.get('invitation') ?? '';
    if (INVITATION.test(invitation)) passed['invitation'] = invitation;
    const pushed = await this.#issuer.push(app.issuerHost, {
      client_id: app.clientId,
      response_type: 'code',
      redirect_uri: this.#redirectUri(visit),
      scope: 'openid',
      state: started.state,
      nonce: started.nonce,
      code_challenge: createHash('sha256').update(started.verifier).digest('base64url'),
      code_challenge_method: 'S256',
      ...passed,
      ...more,
    });
    if (typeof pushed !== 'string')
      throw this.#ctx.problem('identity_unavailable', {
        cause: new Error(`pushed request refused: ${pushed.refused} ${pushed.description ?? ''}`),
      });
    const sealed = this.#box.seal(this.#purpose(visit), JSON.stringify(started));
    extra.append('set-cookie', pkceCookie(Buffer.from(JSON.stringify(sealed)).toString('base64url')));
    return redirect(
      `${this.#ctx.platform.publicOrigin(app.issuerHost)}/oauth/authorize?${new URLSearchParams({
        client_id: app.clientId,
        request_uri: pushed,
      })}`,
    );
  }

  async #app(visit: Visit): Promise<App> {
    const app = await this.#apps.of(visit);
    if (!app) throw this.#ctx.problem('app_unknown');
    return app;
  }

  #started(visit: Visit): Started | undefined {
    const cookie = readCookie(visit.header('cookie'), PKCE_COOKIE);
    if (!cookie) return undefined;
    try {
      const sealed = JSON.parse(Buffer.from(cookie, 'base64url').toString('utf8')) as Sealed;
      const text = this.#box.open(this.#purpose(visit), sealed);
      const started = text === undefined ? undefined : (JSON.parse(text) as Started);
      return started && this.#ctx.clock.now().getTime() - started.at < STARTED_MS ? started : undefined;
    } catch {
      return undefined;
    }
  }

  async #exchange(app: App, visit: Visit, { code, verifier }: { code: string; verifier: string }): Promise<TokenAnswer> {
    const answer = await this.#issuer.token(app.issuerHost, {
      grant_type: 'authorization_code',
      client_id: app.clientId,
      code,
      redirect_uri: this.#redirectUri(visit),
      code_verifier: verifier,
    });
    if (isRefusal(answer))
      throw this.#ctx.problem('sign_in_refused', {
        detail: 'The identity service did not accept the answer.',
        cause: new Error(`${answer.refused} ${answer.description ?? ''}`),
      });
    return answer;
  }

  async #open(app: App, visit: Visit, tokens: TokenAnswer, nonce: string) {
    const access = claimsOf(tokens.access_token);
    const id =
      tokens.id_token === undefined
        ? undefined
        : await this.#issuer.idClaims(app.issuerHost, tokens.id_token, { clientId: app.clientId, nonce });
    const text = (name: string) =>
      [access?.[name], id?.[name]].find(value => typeof value === 'string' && value !== '') as string | undefined;
    const [userId, envId, authEnv, sid] = ['sub', 'env_id', 'auth_env', 'sid'].map(name =>
      typeof access?.[name] === 'string' ? (access[name] as string) : undefined,
    );
    try {
      // D4: nothing is guessed about a person.
      if (!id || !userId || id.sub !== userId || !envId || !authEnv || !sid) throw this.#ctx.problem('claims_undecodable');
      // D3
      if (authEnv !== app.envId) throw this.#ctx.problem('auth_env_mismatch');
      const verified = [access, id].some(claims => claims?.['email_verified'] === true);
      if (app.gate !== 'open') await this.#requireGate(app.gate, { userId, address: verified ? text('email') : undefined });
      return await this.#sessions.open({
        tokens,
        user_id: userId,
        email: text('email') ?? '',
        display_name: text('name') ?? null,
        app_instance_id: app.appInstanceId,
        client_id: app.clientId,
        issuer_host: app.issuerHost,
        env_id: envId,
        auth_env: authEnv,
        sid,
        user_agent: visit.header('user-agent') ?? '',
        ip: visit.ip,
      });
    } catch (error) {
      if (tokens.refresh_token) await this.#issuer.revoke(app.issuerHost, app.clientId, tokens.refresh_token);
      throw error;
    }
  }

  /** F-A, D-02: by live groups and invitations, so that an answer that cannot be had is a refusal. */
  async #requireGate(
    { group, orInvited }: Exclude<App['gate'], 'open'>,
    { userId, address }: { userId: string; address: string | undefined },
  ): Promise<void> {
    const { identity, registry } = this.#ctx.services;
    const { groups } = await identity.userGroups({ params: { user_id: userId } }).catch(cause => {
      throw this.#ctx.problem('identity_unavailable', { cause });
    });
    if (groups.some(({ name }) => name === group)) return;
    if (orInvited && address !== undefined) {
      const { pending } = await registry.checkInvitation({ body: { email: address } }).catch(cause => {
        throw this.#ctx.problem('not_ready', {
          cause,
          detail: 'Whether you are invited cannot be found out now.',
          headers: { 'retry-after': '2' },
        });
      });
      if (pending) return;
    }
    throw this.#ctx.problem('group_gate_denied', {
      detail: 'Ask somebody who is already there to invite you, and sign in with the address of the invitation.',
    });
  }

  /** Nobody keeps two sessions of one application in one browser. */
  async #endPrevious(visit: Visit): Promise<void> {
    const previous = await this.#sessions.find(readCookie(visit.header('cookie'), SESSION_COOKIE));
    if (previous) await this.#sessions.end(previous, 'signed_in_again', { revoke: true });
  }

  #cookie(visit: Visit, value: string, maxAgeS: number): string {
    return sessionCookie(value, {
      host: visit.hostname,
      platformDomain: this.#ctx.platform.domain,
      maxAgeS,
      partitioned: this.#ctx.config.partitionedCookie,
    });
  }

  #redirectUri({ hostname }: Visit): string {
    return `${this.#ctx.platform.publicOrigin(hostname)}/auth/callback`;
  }

  #purpose({ hostname }: Visit): string {
    return `sign-in ${hostname}`;
  }
}

const redirect = (location: string): Response =>
  new Response(null, { status: 302, headers: { location, 'referrer-policy': 'no-referrer' } });
