import type { OAuthContext } from '../oauth-context.ts';

export interface FieldError {
  readonly pointer: string;
  readonly message: string;
}

/** What the service answered instead; status 0 when there was no answer. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly detail: string | undefined;
  readonly errors: readonly FieldError[];
  readonly correlationId: string;

  constructor(status: number, body: Record<string, unknown>, correlationId: string) {
    super(`${status}`);
    this.status = status;
    this.code = String(body['code'] ?? body['error'] ?? '');
    const detail = body['detail'] ?? body['error_description'] ?? body['title'];
    this.detail = typeof detail === 'string' ? detail : undefined;
    this.errors = Array.isArray(body['errors']) ? (body['errors'] as FieldError[]) : [];
    this.correlationId = typeof body['correlation_id'] === 'string' ? body['correlation_id'] : correlationId;
  }
}

export interface SignInAnswer {
  readonly status: 'ok' | 'mfa_required' | 'password_change_required' | 'verification_required';
  readonly mfa?: { readonly challenge_id: string; readonly methods: readonly string[] };
  readonly session_token_id?: string;
  readonly next?: string;
}
export interface ConsentClient {
  readonly client: { readonly name: string; readonly logo_url?: string | null };
  readonly scopes: readonly { readonly scope: string; readonly title: string }[];
}
export interface Account {
  readonly id: string;
  readonly name: string;
  readonly mask?: string;
  readonly type?: string;
  readonly selected: boolean;
}
export interface OwnAccount {
  readonly email: string;
  readonly has_password: boolean;
  readonly mfa_enrolled: boolean;
  readonly recovery_codes_left: number;
  readonly recovery: { readonly ready_at: string } | null;
}
export interface OwnSession {
  readonly session_id: string;
  readonly device: string | null;
  readonly current: boolean;
  readonly last_seen_at: string;
}
export interface OwnConsent extends ConsentClient {
  readonly client_id: string;
  readonly granted_at: string;
}
export interface PasskeyChallenge {
  readonly challenge: string;
  readonly rp_id: string;
  readonly timeout_ms: number;
}
export interface PasskeyCreation extends PasskeyChallenge {
  readonly rp_name: string;
  readonly user: { readonly id: string; readonly name: string; readonly display_name: string };
  readonly algorithms: readonly number[];
  readonly exclude: readonly string[];
}
export interface OwnPasskey {
  readonly passkey_id: string;
  readonly name: string;
  readonly suspended: boolean;
  readonly last_used_at: string | null;
}
export interface Authenticator {
  readonly secret: string;
  readonly otpauth_uri: string;
  readonly qr: { readonly size: number; readonly path: string };
}
interface RecoveryCodes {
  readonly recovery_codes: readonly string[];
}
interface WalletChallenge {
  readonly challenge_id: string;
  readonly message: string;
}
type Decision = 'approve' | 'deny';

/** The password once more, of accounts that have one. */
const shownAgain = (password: string): { password?: string } => (password ? { password } : {});

/** The identity service of this very origin; there is no other host to talk to. */
export class IdentityApi {
  readonly #fetch: typeof fetch;
  readonly #correlation: string;
  readonly #language: string;
  /** In memory only, so it is gone with the page. */
  #sessionTokenId: string | undefined;

  constructor(correlation: string, language: string, fetcher: typeof fetch = (...args) => fetch(...args)) {
    this.#correlation = correlation;
    this.#language = language;
    this.#fetch = fetcher;
  }

  branding = () => this.#send<Record<string, unknown>>('GET', '/v1/branding');
  signIn = (body: { email: string; password: string; oauth: OAuthContext }) => this.#authenticate('/v1/sign-in', body);
  signUp = (body: { email: string; password: string; display_name?: string; oauth: OAuthContext }) =>
    this.#authenticate('/v1/sign-up', body);
  verifyMfa = (body: { challenge_id: string; method: 'totp' | 'recovery_code'; code: string }) =>
    this.#authenticate('/v1/mfa/verify', body);
  changePassword = (body: { password: string; oauth: OAuthContext }) => this.#authenticate('/v1/password/change', body);
  requestReset = (email: string) => this.#send('POST', '/v1/password/reset-request', { email });
  resetPassword = (body: { token: string; password: string }) => this.#send('POST', '/v1/password/reset', body);
  verifyEmail = (token: string) => this.#send<{ joined?: boolean; email?: string }>('POST', '/v1/email/verify', { token });
  requestVerification = (email: string) => this.#send('POST', '/v1/email/verify-request', { email });
  requestRecovery = (email: string) => this.#send('POST', '/v1/recovery/request', { email });
  confirmRecovery = (token: string) => this.#send<{ needs_approval: boolean; ready_at: string }>('POST', '/v1/recovery/confirm', { token });
  cancelRecovery = (token: string) => this.#send('POST', '/v1/recovery/cancel', { token });
  finishRecovery = (body: { token: string; password: string }) => this.#send('POST', '/v1/recovery/finish', body);
  endRecovery = () => this.#send('POST', '/v1/account/recovery/end');
  account = () => this.#send<OwnAccount>('GET', '/v1/account');
  sessions = () => this.#send<{ items: readonly OwnSession[] }>('GET', '/v1/account/sessions');
  endSession = (id: string) => this.#send('POST', `/v1/account/sessions/${encodeURIComponent(id)}/revoke`);
  endOtherSessions = () => this.#send('POST', '/v1/account/sessions/revoke-others');
  consents = () => this.#send<{ items: readonly OwnConsent[] }>('GET', '/v1/account/consents');
  withdrawConsent = (clientId: string) => this.#send('POST', `/v1/account/consents/${encodeURIComponent(clientId)}/withdraw`);
  passkeyChallenge = () => this.#send<PasskeyChallenge>('POST', '/v1/passkey/challenge');
  passkeySignIn = (body: { credential: object; oauth: OAuthContext }) => this.#authenticate('/v1/passkey/sign-in', body);
  passkeys = () => this.#send<{ items: readonly OwnPasskey[] }>('GET', '/v1/account/passkeys');
  beginPasskey = (password: string) => this.#send<PasskeyCreation>('POST', '/v1/account/passkeys/begin', shownAgain(password));
  finishPasskey = (body: { credential: object; name: string }) => this.#send<OwnPasskey>('POST', '/v1/account/passkeys/finish', body);
  renamePasskey = (id: string, name: string) => this.#send('POST', `/v1/account/passkeys/${encodeURIComponent(id)}/rename`, { name });
  removePasskey = (id: string) => this.#send('POST', `/v1/account/passkeys/${encodeURIComponent(id)}/remove`);
  beginSso = (oauth: OAuthContext) => this.#send<{ redirect_to: string }>('POST', '/v1/sso/begin', { oauth });
  finishSso = (body: { state: string; code?: string; error?: string; iss?: string }) => this.#authenticate('/v1/sso/finish', body);
  changeOwnPassword = (body: { current_password: string; password: string }) => this.#authenticate('/v1/account/password', body);
  beginMfa = (password: string) => this.#send<Authenticator>('POST', '/v1/account/mfa/begin', shownAgain(password));
  confirmMfa = (code: string) => this.#send<RecoveryCodes>('POST', '/v1/account/mfa/confirm', { code });
  removeMfa = (password: string) => this.#send('POST', '/v1/account/mfa/remove', shownAgain(password));
  renewRecoveryCodes = (password: string) => this.#send<RecoveryCodes>('POST', '/v1/account/mfa/recovery-codes', shownAgain(password));
  consent = (client_id: string, scope: string) =>
    this.#send<ConsentClient>('GET', `/v1/consent?${new URLSearchParams({ client_id, scope })}`);
  consentAccounts = (consent_flow: string) =>
    this.#send<{ accounts: readonly Account[]; message?: string }>('GET', `/v1/consent/accounts?${new URLSearchParams({ consent_flow })}`);
  continueAuthorization = (body: OAuthContext & { decision: Decision; consent_flow?: string; selected_account_ids?: string[] }) =>
    this.#send<{ redirect_to: string }>('POST', '/oauth/authorize/continue', body);
  device = (user_code: string) => this.#send<ConsentClient>('GET', `/v1/device?${new URLSearchParams({ user_code })}`);
  decideDevice = (user_code: string, decision: Decision) => this.#send('POST', '/v1/device/decision', { user_code, decision });
  ciba = (id: string) =>
    this.#send<{ client: { name: string }; actor_display: string; binding_message?: string; expires_at: string }>(
      'GET',
      `/v1/ciba/${encodeURIComponent(id)}`,
    );
  decideCiba = (id: string, decision: Decision) => this.#send('POST', `/v1/ciba/${encodeURIComponent(id)}/decision`, { decision });
  walletChallenge = (address: string, oauth?: OAuthContext) =>
    this.#send<WalletChallenge>('POST', '/v1/wallet/challenge', { address, ...(oauth ? { oauth } : {}) });
  walletVerify = (body: { challenge_id: string; signature: string }) => this.#authenticate('/v1/wallet/verify', body);
  wallets = () => this.#send<{ enabled: boolean; items: readonly { address: string }[] }>('GET', '/v1/account/wallets');
  beginWalletLink = (address: string, password: string) =>
    this.#send<WalletChallenge>('POST', '/v1/account/wallets/challenge', { address, ...shownAgain(password) });
  linkWallet = (body: { challenge_id: string; signature: string }) => this.#send('POST', '/v1/account/wallets', body);
  unlinkWallet = (address: string, password: string) =>
    this.#send('POST', `/v1/account/wallets/${encodeURIComponent(address)}/remove`, shownAgain(password));
  /** No page calls it; applications embedding this client may. */
  signOut = () => this.#send('POST', '/v1/sign-out');

  async #authenticate(path: string, body: object): Promise<SignInAnswer> {
    const answer = await this.#send<SignInAnswer>('POST', path, body);
    if (answer.session_token_id) this.#sessionTokenId = answer.session_token_id;
    return answer;
  }

  async #send<T = unknown>(method: 'GET' | 'POST', path: string, body?: object): Promise<T> {
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      accept: 'application/json',
      'accept-language': this.#language,
      'x-platform-correlation-id': this.#correlation,
    };
    if (method === 'POST' && this.#sessionTokenId) headers['x-platform-csrf'] = this.#sessionTokenId;
    const response = await this.#fetch(path, {
      method,
      headers,
      credentials: 'include',
      cache: 'no-store',
      ...(body ? { body: JSON.stringify(body) } : {}),
    }).catch(() => {
      throw new ApiProblem(0, {}, this.#correlation);
    });
    const text = await response.text();
    let answer: unknown;
    try {
      answer = text ? JSON.parse(text) : {};
    } catch {
      answer = {};
    }
    if (!response.ok) throw new ApiProblem(response.status, answer as Record<string, unknown>, this.#correlation);
    return answer as T;
  }
}
