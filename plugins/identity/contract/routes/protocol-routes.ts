import { del, get, post, Type } from '@platform/sdk/contract';
import { Account, Asking, ClientMetadata, Decision, SigningKey, UserCode } from '../schema/protocol.ts';
import { worksOnce } from '../idempotency.ts';

const ofAuthReq = { auth_req_id: Type.String({ maxLength: 200 }) };

const hosted = 'A person decides here; the session cookie of this host says who';
const page = ['realm_not_found', 'session_required'] as const;
const decision = [...page, 'csrf_mismatch', 'bad_origin', 'approval_not_found'] as const;

/** What people decide about applications on the hosted pages (G-AUTH-06), clients registered from inside, and the signing keys. */
export const protocolRoutes = {
  consent: get('/v1/consent', {
    summary: 'Who asks for consent, and for what',
    gate: { public: 'Names of applications and titles of scopes are shown before anybody has signed in' },
    query: { client_id: Type.String({ maxLength: 300 }), scope: Type.Optional(Type.String({ maxLength: 4_000 })) },
    returns: Asking,
    problems: ['realm_not_found', 'client_not_found'],
  }),
  consentAccounts: get('/v1/consent/accounts', {
    summary: 'Accounts the person can share with the application',
    gate: { public: hosted },
    query: { consent_flow: Type.String({ minLength: 1, maxLength: 120 }) },
    returns: Type.Object({ accounts: Type.Array(Account), message: Type.Optional(Type.String()) }),
    problems: [...page, 'interaction_not_found', 'accounts_unavailable'],
  }),
  device: get('/v1/device', {
    summary: 'What the device that shows this code asks for',
    gate: { public: hosted },
    query: { user_code: UserCode },
    returns: Asking,
    problems: [...page, 'approval_not_found', 'rate_limited', 'store_away'],
  }),
  decideDevice: post('/v1/device/decision', {
    summary: 'Let a device in, or not',
    idempotency: worksOnce,
    gate: { public: hosted },
    limit: 4_096,
    body: Type.Object({ user_code: UserCode, ...Decision.properties }),
    returns: Type.Object({ status: Type.String() }),
    problems: [...decision, 'rate_limited', 'store_away'],
  }),
  ciba: get('/v1/ciba/{auth_req_id}', {
    params: ofAuthReq,
    summary: 'Who asks to act for the person',
    gate: { public: hosted },
    returns: Type.Object({
      client: Type.Object({ name: Type.String() }),
      actor_display: Type.String(),
      binding_message: Type.Optional(Type.String()),
      expires_at: Type.String(),
    }),
    problems: [...page, 'approval_not_found'],
  }),
  decideCiba: post('/v1/ciba/{auth_req_id}/decision', {
    params: ofAuthReq,
    summary: 'Let somebody act for the person, or not',
    idempotency: worksOnce,
    gate: { public: hosted },
    limit: 4_096,
    body: Decision,
    returns: Type.Object({ status: Type.String() }),
    problems: [...decision],
  }),

  registerClient: post('/v1/admin/clients', {
    summary: 'Register an OAuth client in a realm; its secret is told this once',
    idempotency: 'secret',
    gate: 'auth:clients:write',
    body: ClientMetadata,
    limit: 65_536,
    returns: ClientMetadata,
    status: 201,
    problems: ['target_env_missing', 'realm_not_found', 'client_metadata_invalid', 'vertical_elsewhere'],
    emits: ['platform:auth:client:created'],
    hidden: true,
  }),
  deleteClient: del('/v1/admin/clients/{client_id}', {
    params: { client_id: Type.String({ maxLength: 300 }) },
    summary: 'Delete an OAuth client of a realm with everything it was granted',
    gate: 'auth:clients:write',
    problems: ['target_env_missing', 'vertical_elsewhere'],
    emits: ['platform:auth:client:deleted'],
    hidden: true,
  }),

  deleteClientsOf: del('/v1/admin/clients/of/{software_id}', {
    params: { software_id: Type.String({ maxLength: 200 }) },
    summary:
      'Delete every OAuth client of a realm that the caller registered under a software_id (RFC 7591), whatever became of the answers',
    gate: 'auth:clients:write',
    problems: ['target_env_missing', 'vertical_elsewhere'],
    emits: ['platform:auth:client:deleted'],
    hidden: true,
  }),

  listKeys: get('/v1/keys', {
    summary: 'The signing keys and their states',
    gate: 'auth:keys:admin',
    returns: Type.Object({ items: Type.Array(SigningKey) }),
    problems: ['platform_only'],
  }),
  rotateKeys: post('/v1/keys/rotate', {
    summary: 'Sign with the next keys from now on',
    gate: 'auth:keys:admin',
    returns: Type.Object({ items: Type.Array(SigningKey) }),
    problems: ['platform_only', 'keys_too_fresh'],
  }),
};
