import { useMemo, useRef } from 'react';
import { AuditTrail } from '../api/audit-trail.ts';
import type { ConsoleConfig } from '../api/gateway/console-config.ts';
import type { GatewayClient } from '../api/gateway/gateway-client.ts';
import { Problem } from '../api/gateway/problem.ts';
import type { LiveChannel } from '../api/live/live-channel.ts';
import { MembersApi } from '../api/members-api.ts';
import { type Bootstrap, RegistryApi } from '../api/registry-api.ts';
import { SessionEndedPage } from '../pages/session-ended-page.tsx';
import { SignedOutPage } from '../pages/signed-out-page.tsx';
import { Broken, Loading } from '../widgets/page/page-state.tsx';
import { useHash } from './browser-state.ts';
import { ConsoleState } from './console-context.ts';
import { useFeatures } from './loading/use-features.ts';
import { useMembership } from './loading/use-membership.ts';
import { signedIn, useSession } from './loading/use-session.ts';
import { type Place, placeOf } from './navigation/place.ts';
import { parseRoute } from './navigation/route.ts';
import { useSignIn } from './navigation/use-sign-in.ts';
import { Shell } from './shell.tsx';
import { Toasts, useToasts } from './toasts.tsx';

interface ConsoleProps {
  config: ConsoleConfig;
  client: GatewayClient;
  live: LiveChannel;
}

/** From nothing to a rendered screen: session (G0), membership (G1), and what the live channel changes later. */
export function Console({ config, client, live }: ConsoleProps) {
  const hash = useHash();
  const route = useMemo(() => parseRoute(hash), [hash]);
  const registry = useMemo(() => new RegistryApi(client, config.services.registry), [client, config]);
  const members = useMemo(() => new MembersApi(client, config.services.registry), [client, config]);
  const audit = useMemo(() => new AuditTrail(client, config.services), [client, config]);
  const before = useRef<Place>(undefined);

  const lastHash = useRef(hash);
  if (lastHash.current !== hash) {
    lastHash.current = hash;
    client.beginAction();
  }

  const { session, open } = useSession(client);
  const invited = route.name === 'bootstrap' && route.invitation !== undefined;
  const asked = { registry, live, types: config.live_types, signedIn: signedIn(session), invited };
  const { membership, services, settle, refresh, liveState } = useMembership(asked);
  const { toasts, notify } = useToasts();

  const bootstrap: Bootstrap | undefined = membership && 'bootstrap' in membership ? membership.bootstrap : undefined;
  const place = placeOf(route, bootstrap, before.current);
  before.current = place;
  const features = useFeatures(registry, bootstrap, place, signedIn(session) ? session.env_id : null);
  const toLogin = useSignIn({ client, route, hash, session });

  if (liveState === 'ended' && route.name !== 'sign-out') return <SessionEndedPage loginUrl={client.loginUrl(hash || '#/')} />;
  if (route.name === 'sign-out') {
    const { everywhere } = route;
    const leaving = { client, session, everywhere: everywhere === true, loginUrl: client.loginUrl('#/') };
    return <SignedOutPage key={String(everywhere)} {...leaving} />;
  }
  if (toLogin) return <Waiting label="Going to sign-in…" />;
  if (session instanceof Problem)
    return (
      <main className="alone">
        <Broken problem={session} retry={open} />
      </main>
    );
  if (!signedIn(session)) return <Waiting label="Checking your session…" />;
  if (!membership) return <Waiting label="Loading your organizations…" />;

  return (
    <ConsoleState
      value={{ config, client, registry, members, audit, live, session, bootstrap, services, features, route, place, refresh, notify }}
    >
      <Shell membership={membership} settle={settle} liveState={liveState} />
      <Toasts toasts={toasts} />
    </ConsoleState>
  );
}

function Waiting({ label }: { label: string }) {
  return (
    <main className="alone">
      <Loading label={label} />
    </main>
  );
}
