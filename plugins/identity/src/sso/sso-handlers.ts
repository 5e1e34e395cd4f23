import type { ssoRoutes } from '../../contract/routes/sso-routes.ts';
import type { Handlers } from '../context.ts';
import type { SsoSignIn } from './sso-sign-in.ts';
import type { UpstreamProviders } from './upstream-providers.ts';

/** Routes of single sign-on to who answers them. */
export const ssoHandlers = ({
  providers,
  signIn,
}: {
  providers: UpstreamProviders;
  signIn: SsoSignIn;
}): Handlers<keyof typeof ssoRoutes> => ({
  beginSso: request => signIn.begin(request),
  finishSso: request => signIn.finish(request),
  getUpstream: request => providers.get(request),
  putUpstream: request => providers.put(request),
  deleteUpstream: request => providers.delete(request),
});
