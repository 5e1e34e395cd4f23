import { useEffect } from 'react';
import type { GatewayClient } from '../../api/gateway/gateway-client.ts';
import { invitationReference } from '../../api/invitation-reference.ts';
import type { SessionState } from '../loading/use-session.ts';
import type { Route } from './route.ts';

interface Asked {
  readonly client: GatewayClient;
  readonly route: Route;
  readonly hash: string;
  readonly session: SessionState;
}

/** Leads to the sign-in whoever has no session, and back to the start whoever comes from it. Says whether the browser is on its way there. */
export function useSignIn({ client, route, hash, session }: Asked): boolean {
  const toLogin = route.name === 'sign-in' || (session === 'absent' && route.name !== 'sign-out');
  useEffect(() => {
    if (!toLogin) return;
    const back = route.name === 'sign-in' ? '#/' : hash || '#/';
    const token = route.name === 'bootstrap' ? route.invitation : undefined;
    if (token === undefined) return location.replace(client.loginUrl(back));
    void invitationReference(token).then(reference => location.replace(client.loginUrl(back, reference)));
  }, [toLogin, client, hash, route]);
  useEffect(() => {
    if (route.name === 'callback') location.replace('#/');
  }, [route]);
  return toLogin;
}
