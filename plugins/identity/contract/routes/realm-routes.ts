import { get, Id, put, Type } from '@platform/sdk/contract';
import { AccountRecovery, RecoveryWaitHours } from '../schema/recovery.ts';
import { Host } from '../schema.ts';
import { SignInSettings } from '../schema/sign-in-settings.ts';
import { WalletSignIn } from '../schema/wallet.ts';

/** Where an environment signs in, and what its people may do there. */
export const realmRoutes = {
  putRealm: put('/v1/admin/realms/{env_id}', {
    params: { env_id: Id },
    summary: 'Say on which host an environment signs in',
    gate: 'auth:membership:write',
    body: Type.Object({
      host: Host,
      org_id: Id,
      verify_email: Type.Optional(
        Type.Boolean({ description: 'Whether people confirm their e-mail address before they sign in; yes unless said otherwise' }),
      ),
      wallet_sign_in: Type.Optional(WalletSignIn),
      passkeys: Type.Optional(Type.Boolean({ description: 'Whether people may sign in with passkeys; no unless said otherwise' })),
      account_recovery: Type.Optional(AccountRecovery),
      recovery_wait_hours: Type.Optional(RecoveryWaitHours),
    }),
    returns: Type.Object({ env_id: Id, host: Type.String(), ...SignInSettings.properties }),
    problems: ['host_taken', 'name_invalid'],
    hidden: true,
  }),
  issuerOn: get('/v1/admin/issuers/{host}', {
    params: { host: Host },
    summary: 'Which environment signs in on a host',
    gate: 'auth:membership:read',
    returns: Type.Object({ env_id: Id }),
    problems: ['realm_not_found'],
    hidden: true,
  }),
  signInSettings: get('/v1/sign-in-settings', {
    summary: 'How the people of an environment sign in',
    gate: { any: ['auth:users:read', 'auth:users:admin', 'auth:realms:admin'] },
    env: 'own',
    returns: SignInSettings,
    problems: ['realm_not_found'],
  }),
  putSignInSettings: put('/v1/sign-in-settings', {
    summary: 'Save settings',
    gate: 'auth:realms:admin',
    env: 'own',
    body: SignInSettings,
    returns: SignInSettings,
    problems: ['realm_not_found', 'realm_configured'],
  }),
};
