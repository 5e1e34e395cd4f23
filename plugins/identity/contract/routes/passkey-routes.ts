import { get, Id, post, Type } from '@platform/sdk/contract';
import { ShownAgain } from '../schema/account.ts';
import { Assertion, Attestation, Passkey, PasskeyChallenge, PasskeyCreation, PasskeyName } from '../schema/passkey.ts';
import { OAuthContext, Signed } from '../schema.ts';
import { challenge, comesToTheSame, worksOnce } from '../idempotency.ts';

const ofPasskey = { passkey_id: Id };

const hosted = { public: 'A person signs in here; there is no credential yet' } as const;
const own = { public: 'The sign-in session of the browser is the credential; the handler asks for it' } as const;
const page = ['csrf_mismatch', 'bad_origin', 'realm_not_found', 'passkeys_off'] as const;
const braked = ['rate_limited', 'store_away'] as const;
const updated = ['platform:auth:user:updated'] as const;
const limit = 65_536;

/** Passkeys (WebAuthn 3): sign-in without a password, and their owner's list of them. Where an environment turned them on. */
export const passkeyRoutes = {
  passkeyChallenge: post('/v1/passkey/challenge', {
    summary: 'Begin to sign in with a passkey',
    idempotency: challenge,
    gate: hosted,
    returns: PasskeyChallenge,
    problems: [...page, ...braked],
  }),
  passkeySignIn: post('/v1/passkey/sign-in', {
    summary: 'Sign in with what an authenticator signed',
    idempotency: worksOnce,
    gate: hosted,
    limit,
    body: Type.Object({ credential: Assertion, oauth: OAuthContext }),
    returns: Signed,
    problems: [...page, ...braked, 'passkey_refused', 'token_expired', 'invalid_credentials'],
  }),
  ownPasskeys: get('/v1/account/passkeys', {
    summary: 'The own passkeys',
    gate: own,
    returns: Type.Object({ items: Type.Array(Passkey) }),
    problems: ['realm_not_found', 'session_required', 'passkeys_off'],
  }),
  beginPasskey: post('/v1/account/passkeys/begin', {
    summary: 'Begin to set up a passkey',
    idempotency: challenge,
    gate: own,
    limit: 16_384,
    body: Type.Object({ password: ShownAgain }),
    returns: PasskeyCreation,
    problems: [...page, ...braked, 'session_required', 'wrong_password', 'sign_in_again', 'account_locked', 'busy', 'too_many_passkeys'],
  }),
  finishPasskey: post('/v1/account/passkeys/finish', {
    summary: 'Keep the passkey that an authenticator made',
    idempotency: worksOnce,
    gate: own,
    limit,
    body: Type.Object({ credential: Attestation, name: PasskeyName }),
    returns: Passkey,
    problems: [...page, 'session_required', 'passkey_refused', 'token_expired', 'too_many_passkeys'],
    emits: updated,
  }),
  renamePasskey: post('/v1/account/passkeys/{passkey_id}/rename', {
    params: ofPasskey,
    summary: 'Call an own passkey something else',
    idempotency: comesToTheSame,
    gate: own,
    limit: 4_096,
    body: Type.Object({ name: PasskeyName }),
    returns: Passkey,
    problems: [...page, 'session_required', 'passkey_not_found'],
  }),
  removePasskey: post('/v1/account/passkeys/{passkey_id}/remove', {
    params: ofPasskey,
    summary: 'Accept an own passkey no more',
    idempotency: comesToTheSame,
    gate: own,
    problems: [...page, 'session_required', 'passkey_not_found', 'last_means'],
    emits: updated,
  }),
};
