import type { passkeyRoutes } from '../../contract/routes/passkey-routes.ts';
import type { Handlers } from '../context.ts';
import type { OwnPasskeys } from './own-passkeys.ts';
import type { PasskeySignIn } from './passkey-sign-in.ts';

/** Routes of passkeys to who answers them. */
export const passkeyHandlers = ({ own, signIn }: { own: OwnPasskeys; signIn: PasskeySignIn }): Handlers<keyof typeof passkeyRoutes> => ({
  passkeyChallenge: request => signIn.challenge(request),
  passkeySignIn: request => signIn.signIn(request),
  ownPasskeys: request => own.list(request),
  beginPasskey: request => own.begin(request),
  finishPasskey: request => own.finish(request),
  renamePasskey: request => own.rename(request),
  removePasskey: request => own.remove(request),
});
