import type { realmRoutes } from '../contract/routes/realm-routes.ts';
import type { Handlers } from './context.ts';
import type { Realms } from './realms.ts';
import type { SignInSettings } from './sign-in/sign-in-settings.ts';

interface Parts {
  readonly realms: Realms;
  readonly settings: SignInSettings;
}

/** Routes of realms and how people sign in there to who answers them. */
export const realmHandlers = ({ realms, settings }: Parts): Handlers<keyof typeof realmRoutes> => ({
  issuerOn: async ({ params }) => ({ env_id: (await realms.onHost(params.host)).env_id }),
  putRealm: request => realms.put(request),
  signInSettings: request => settings.get(request),
  putSignInSettings: request => settings.put(request),
});
