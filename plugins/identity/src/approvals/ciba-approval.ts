import type { RequestOf } from '@platform/sdk';
import { errors } from 'oidc-provider';
import type { BrowserSession } from '../sign-in/browser-session.ts';
import type { Headers } from '../sign-in/request-cookies.ts';
import type { ClientDirectory } from '../clients/client-directory.ts';
import type { Contract, Ctx } from '../context.ts';
import type { PageGuard } from '../sign-in/page-guard.ts';
import type { People } from '../people/people.ts';
import type { Protocol } from '../protocol/protocol.ts';
import type { Realm, Realms } from '../realms.ts';
import { actorOf, type CibaRequest } from './ciba-feature.ts';
import { addScopes, type Consents } from './consents.ts';
import { decideOnce } from './device-approval.ts';

interface Parts {
  readonly browser: BrowserSession;
  readonly clients: ClientDirectory;
  readonly consents: Consents;
  readonly guard: PageGuard;
  readonly people: People;
  readonly protocol: Protocol;
  readonly realms: Realms;
}

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
