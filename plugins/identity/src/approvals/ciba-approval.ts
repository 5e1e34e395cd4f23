import { isId, type RequestOf } from '@platform/sdk';
import type Provider from 'oidc-provider';
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { BrowserSession, Headers } from '../sign-in/browser-session.ts';
import type { ClientDirectory } from '../clients/client-directory.ts';
import type { Contract, Ctx } from '../context.ts';
import type { PageGuard } from '../sign-in/page-guard.ts';
import type { People } from '../people/people.ts';
import type { Protocol } from '../protocol/protocol.ts';
import type { Realm, Realms } from '../realms.ts';
import type { TokenVerifier } from '../protocol/token-verifier.ts';
import type { CibaNotice } from './ciba-notice.ts';
import { addScopes, type Consents } from './consents.ts';
import { decideOnce } from './device-approval.ts';

type CibaRequest = InstanceType<Provider['BackchannelAuthenticationRequest']>;
interface Parts {
  readonly browser: BrowserSession;
  readonly clients: ClientDirectory;
  readonly consents: Consents;
  readonly guard: PageGuard;
  readonly people: People;
  readonly protocol: Protocol;
  readonly realms: Realms;
}
const MARK = 'actor:';
const BINDING_MESSAGE = /^[\p{L}\p{N}\p{P}\p{Zs}]{1,128}$/u;

/** Somebody of the staff asks to act for a customer; only the customer who was named decides (G-AUTH-03, G-BFF-07). */
export class CibaApproval {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async show({ params, headers, hostname }: RequestOf<Contract, 'ciba'>) {
    const { request, realm } = await this.#waiting(hostname, headers, params.auth_req_id);
    const client = await this.#parts.clients.find(request.clientId as string, realm.env_id);
    const name = String(client?.client_name ?? request.clientId);
    const actor = actorOf(request);
    const person = actor ? await this.#parts.people.byId(actor) : undefined;
    const message = paramsOf(request)['binding_message'];
    return {
      client: { name },
      actor_display: person?.display_name ?? person?.email ?? name,
      ...(typeof message === 'string' ? { binding_message: message } : {}),
      expires_at: new Date((request.exp as number) * 1_000).toISOString(),
    };
  }

  async decide({ params, body, headers, hostname }: RequestOf<Contract, 'decideCiba'>) {
    const { consents, guard, protocol, realms } = this.#parts;
    await guard.require(await realms.onHost(hostname), headers);
    const { request, realm, session } = await this.#waiting(hostname, headers, params.auth_req_id);
    const provider = protocol.provider(realm);
    if (!(await decideOnce(provider, request.jti, request.exp as number))) throw this.#gone();
    if (body.decision === 'deny') {
      await provider.backchannelResult(request, new errors.AccessDenied('the person declined'));
      await this.#record('auth.ciba.denied', realm, session.accountId, request);
      return { status: 'denied' };
    }
    const grant = new provider.Grant({ accountId: session.accountId, clientId: request.clientId });
    addScopes(
      grant,
      String(request.scope ?? '')
        .split(' ')
        .filter(Boolean),
    );
    const grantId = await grant.save();
    await provider.backchannelResult(request, grant, {
      amr: session.amr ?? ['pwd'],
      authTime: session.authTime() as number,
      sessionUid: session.uid,
    });
    await consents.remember(realm.env_id, grantId, grant);
    await this.#record('auth.ciba.approved', realm, session.accountId, request);
    return { status: 'approved' };
  }

  #record(action: string, realm: Realm, userId: string, request: CibaRequest): Promise<void> {
    return this.#ctx.db.tx(tx =>
      tx.audit({
        action,
        envId: realm.env_id,
        resource: { type: 'user', id: userId },
        details: { client_id: request.clientId, actor: actorOf(request) },
      }),
    );
  }

  async #waiting(hostname: string, headers: Headers, authReqId: string) {
    const { browser, protocol, realms } = this.#parts;
    const realm = await realms.onHost(hostname);
    const session = await browser.current(realm, headers);
    if (!session?.accountId) throw this.#ctx.problem('session_required', { detail: 'Sign in, then open the link again.' });
    const request = await protocol.provider(realm).BackchannelAuthenticationRequest.find(authReqId, { ignoreExpiration: true });
    // What is somebody else's is not there (G-K-02).
    if (!request || request.accountId !== session.accountId || request.isExpired || request.grantId || request.error || request.consumed)
      throw this.#gone();
    return { request, realm, session: session as typeof session & { accountId: string } };
  }

  #gone() {
    return this.#ctx.problem('approval_not_found', { detail: 'The request has ended, was decided, or is not for you.' });
  }
}

const paramsOf = (request: CibaRequest) => (request.params ?? {}) as Record<string, unknown>;

/** The member of the staff a request was made for. */
export function actorOf(request: { params?: unknown } | undefined): string | undefined {
  const mark = (request?.params as Record<string, unknown> | undefined)?.['actor_token'];
  return typeof mark === 'string' && mark.startsWith(MARK) ? mark.slice(MARK.length) : undefined;
}

/** The library's hooks of CIBA for one realm. */
export function cibaFeature({ notice, people }: { notice: CibaNotice; people: People }, realm: Realm) {
  return {
    enabled: true as const,
    deliveryModes: ['poll' as const],
    processLoginHintToken: async () => {
      throw new errors.InvalidRequest('login_hint_token is not supported; send login_hint');
    },
    /** An e-mail address or the id of a person of this realm. */
    processLoginHint: async (_context: KoaContextWithOIDC, hint = '') => {
      const person = hint.length > 320 ? undefined : await (isId(hint) ? people.byId(hint) : people.byEmail(realm.env_id, hint));
      return person?.env_id === realm.env_id ? person.user_id : undefined;
    },
    verifyUserCode: async (_context: KoaContextWithOIDC, _account: unknown, userCode: string | undefined) => {
      if (userCode !== undefined) throw new errors.InvalidRequest('user_code is not supported');
    },
    validateRequestContext: async (_context: KoaContextWithOIDC, request: string | undefined) => {
      if (request !== undefined) throw new errors.InvalidRequest('request_context is not supported');
    },
    validateBindingMessage: async (_context: KoaContextWithOIDC, message: string | undefined) => {
      if (message !== undefined && !BINDING_MESSAGE.test(message))
        throw new errors.InvalidBindingMessage('binding_message is one line of at most 128 letters, digits and punctuation');
    },
    triggerAuthenticationDevice: (_context: KoaContextWithOIDC, request: CibaRequest) => notice.send(realm, request),
  };
}

/** Who acts: checked here and replaced by the person's id, so that no token lies in the database. A delegator always acts for somebody. */
export function actorToken(tokens: TokenVerifier) {
  return async (context: KoaContextWithOIDC, value: unknown, client: { clientId: string }) => {
    const { oidc } = context;
    if (!oidc.params || oidc.route !== 'backchannel_authentication') {
      if (oidc.params) oidc.params['actor_token'] = undefined;
      return;
    }
    if (value === undefined && !client.clientId.endsWith('-delegator')) return;
    const claims = typeof value === 'string' ? await tokens.read(value) : undefined;
    // What somebody else's application holds of a person is not the person at work.
    if (claims?.token_type !== 'access' || claims.limited)
      throw new errors.InvalidRequest("actor_token is not a person's live access token");
    oidc.params['actor_token'] = `${MARK}${claims.sub}`;
  };
}
