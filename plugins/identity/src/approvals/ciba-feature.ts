import { isId } from '@platform/sdk';
import type Provider from 'oidc-provider';
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { People } from '../people/people.ts';
import type { TokenVerifier } from '../protocol/tokens/token-verifier.ts';
import type { Realm } from '../realms.ts';
import type { CibaNotice } from './ciba-notice.ts';

export type CibaRequest = InstanceType<Provider['BackchannelAuthenticationRequest']>;
const MARK = 'actor:';
const BINDING_MESSAGE = /^[\p{L}\p{N}\p{P}\p{Zs}]{1,128}$/u;

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
