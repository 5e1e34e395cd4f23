import type { RequestOf } from '@platform/sdk';
import type Provider from 'oidc-provider';
import type { Attempts } from '../sign-in/attempts.ts';
import type { BrowserSession } from '../sign-in/browser-session.ts';
import type { Headers } from '../sign-in/request-cookies.ts';
import type { ClientDirectory } from '../clients/client-directory.ts';
import type { Contract, Ctx } from '../context.ts';
import type { PageGuard } from '../sign-in/page-guard.ts';
import type { Protocol } from '../protocol/protocol.ts';
import type { Realm, Realms } from '../realms.ts';
import { titlesOf } from './asking.ts';
import { API, addScopes, type Consents } from './consents.ts';

type DeviceCode = InstanceType<Provider['DeviceCode']> & { authTime?: number; amr?: string[]; resource?: string; sessionUid?: string };
interface Parts {
  readonly attempts: Attempts;
  readonly browser: BrowserSession;
  readonly clients: ClientDirectory;
  readonly consents: Consents;
  readonly guard: PageGuard;
  readonly protocol: Protocol;
  readonly realms: Realms;
}

/** A device without a browser shows a code; a person who is signed in types it and decides (RFC 8628). */
export class DeviceApproval {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async show({ query, headers, hostname, ip }: RequestOf<Contract, 'device'>) {
    const { code, realm } = await this.#waiting(hostname, headers, ip, query.user_code);
    const client = await this.#parts.clients.find(code.clientId as string, realm.env_id);
    if (!client) throw this.#gone();
    return {
      client: { name: String(client.client_name ?? client.client_id), logo_url: client.logo_uri ?? null },
      scopes: titlesOf(this.#ctx, scopeOf(code)),
    };
  }

  async decide({ body, headers, hostname, ip }: RequestOf<Contract, 'decideDevice'>) {
    const { consents, guard, protocol, realms } = this.#parts;
    await guard.require(await realms.onHost(hostname), headers);
    const { code, realm, session } = await this.#waiting(hostname, headers, ip, body.user_code);
    const provider = protocol.provider(realm);
    // Of two decisions at once the first counts, and the other is told that there is nothing left to decide.
    if (!(await decideOnce(provider, code.jti, code.exp as number))) throw this.#gone();
    if (body.decision === 'deny') {
      Object.assign(code, { error: 'access_denied', errorDescription: 'the person declined' });
      await code.save();
      await this.#record('auth.device.denied', realm, session.accountId, code);
      return { status: 'denied' };
    }
    const scopes = scopeOf(code).split(' ').filter(Boolean);
    const grant = new provider.Grant({ accountId: session.accountId, clientId: code.clientId });
    addScopes(grant, scopes);
    const grantId = await grant.save();
    Object.assign(code, {
      accountId: session.accountId,
      grantId,
      scope: scopes.join(' '),
      resource: API,
      authTime: session.authTime(),
      amr: session.amr,
      sessionUid: session.uid,
    });
    await code.save();
    await consents.remember(realm.env_id, grantId, grant);
    await this.#record('auth.device.approved', realm, session.accountId, code);
    return { status: 'approved' };
  }

  #record(action: string, realm: Realm, userId: string, { clientId }: DeviceCode): Promise<void> {
    return this.#ctx.db.tx(tx =>
      tx.audit({ action, envId: realm.env_id, resource: { type: 'user', id: userId }, details: { client_id: clientId } }),
    );
  }

  async #waiting(hostname: string, headers: Headers, ip: string, userCode: string) {
    const { attempts, browser, protocol, realms } = this.#parts;
    const realm = await realms.onHost(hostname);
    const session = await browser.current(realm, headers);
    if (!session?.accountId) throw this.#ctx.problem('session_required', { detail: 'Sign in, then enter the code again.' });
    await attempts.userCode(session.accountId, ip);
    const code = (await protocol
      .provider(realm)
      .DeviceCode.findByUserCode(userCode.toUpperCase().replace(/[^A-Z]/g, ''), { ignoreExpiration: true })) as DeviceCode | undefined;
    if (!code || code.isExpired || code.accountId || code.error || code.consumed) throw this.#gone();
    return { code, realm, session: session as typeof session & { accountId: string } };
  }

  #gone() {
    return this.#ctx.problem('approval_not_found', {
      detail: 'Check the code on your device, or start there again: codes last ten minutes.',
    });
  }
}

const scopeOf = (code: DeviceCode): string => String((code.params as Record<string, unknown> | undefined)?.['scope'] ?? '');

/** Insert-or-fail: exactly one decision about one request is the decision (H-13). */
export async function decideOnce(provider: Provider, id: string, expires: number): Promise<boolean> {
  try {
    return await provider.ReplayDetection.unique('decision', id, expires);
  } catch {
    return false;
  }
}
