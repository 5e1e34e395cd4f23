import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { AuditTrail } from '../api/audit-trail.ts';
import type { ConsoleConfig } from '../api/gateway/console-config.ts';
import type { GatewayClient } from '../api/gateway/gateway-client.ts';
import { invitationReference } from '../api/invitation-reference.ts';
import type { LiveChannel } from '../api/live/live-channel.ts';
import { MembersApi } from '../api/members-api.ts';
import type { Tone } from '../api/page-def.ts';
import { Problem } from '../api/gateway/problem.ts';
import { type Bootstrap, RegistryApi, type ServiceEntry } from '../api/registry-api.ts';
import type { Session } from '../api/gateway/session.ts';
import { SessionEndedPage } from '../pages/session-ended-page.tsx';
import { SignedOutPage } from '../pages/signed-out-page.tsx';
import { Broken, Loading } from '../widgets/page/page-state.tsx';
import { useHash } from './browser-state.ts';
import { coalesced } from './loading/coalesced.ts';
import { ConsoleState } from './console-context.ts';
import { MEMBERSHIP_WAITS, type Membership, settleMembership, sleep } from './navigation/gates.ts';
import { type Place, placeOf } from './navigation/place.ts';
import { parseRoute } from './navigation/route.ts';
import { Shell } from './shell.tsx';
import { type Toast, Toasts } from './toasts.tsx';
import { RECONNECTED } from './loading/use-loaded.ts';
import { useFeatures } from './loading/use-features.ts';

interface ConsoleProps {
  config: ConsoleConfig;
  client: GatewayClient;
  live: LiveChannel;
}

/** From nothing to a rendered screen: session (G0), membership (G1), and what the live channel changes later. */
export function Console({ config, client, live }: ConsoleProps) {
  const hash = useHash();
  const route = useMemo(() => parseRoute(hash), [hash]);
  const [session, setSession] = useState<Session | 'absent' | Problem>();
  const [membership, setMembership] = useState<Membership>();
  const [services, setServices] = useState<readonly ServiceEntry[]>();
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const liveState = useSyncExternalStore(
    useCallback(changed => live.watch(changed), [live]),
    () => live.state,
  );
  const registry = useMemo(() => new RegistryApi(client, config.services.registry), [client, config]);
  const members = useMemo(() => new MembersApi(client, config.services.registry), [client, config]);
  const audit = useMemo(() => new AuditTrail(client, config.services), [client, config]);
  const before = useRef<Place>(undefined);

  const lastHash = useRef(hash);
  if (lastHash.current !== hash) {
    lastHash.current = hash;
    client.beginAction();
  }

  const openSession = useCallback(async () => {
    setSession(undefined);
    try {
      setSession(await client.session());
    } catch (error) {
      const problem = Problem.of(error);
      setSession(problem.status === 401 ? 'absent' : problem);
    }
  }, [client]);
  useEffect(() => void openSession(), [openSession]);

  // Who follows an invitation is no member yet: there is nothing to wait for.
  const invited = useRef(false);
  invited.current = route.name === 'bootstrap' && route.invitation !== undefined;
  const settle = useCallback(async () => {
    setMembership(undefined);
    setMembership(await settleMembership(() => registry.bootstrap(), sleep, invited.current ? [] : MEMBERSHIP_WAITS));
  }, [registry]);

  const refresh = useCallback(async () => {
    const [bootstrap, entries] = await Promise.allSettled([registry.bootstrap(), registry.services()]);
    if (bootstrap.status === 'fulfilled')
      setMembership({ kind: isMember(bootstrap.value) ? 'member' : 'not_member', bootstrap: bootstrap.value });
    if (entries.status === 'fulfilled') setServices(entries.value);
  }, [registry]);

  const signedIn = session !== undefined && session !== 'absent' && !(session instanceof Problem);
  useEffect(() => {
    if (!signedIn) return;
    void settle();
    registry.services().then(setServices, () => setServices([]));
    const soon = coalesced(refresh, 400);
    const unsubscribe = live.subscribe(config.live_types, ({ type }) => {
      if (changesNavigation(type)) soon();
    });
    live.open();
    return () => {
      unsubscribe();
      live.close();
    };
  }, [signedIn, settle, refresh, registry, live, config]);

  // What happened while the channel was away was told to nobody here.
  const connectedOnce = useRef(false);
  useEffect(() => {
    if (liveState !== 'connected') return;
    if (connectedOnce.current) {
      void refresh();
      dispatchEvent(new Event(RECONNECTED));
    }
    connectedOnce.current = true;
  }, [liveState, refresh]);

  const notify = useCallback((text: string, tone: Tone = 'ok') => {
    const toast = { id: crypto.randomUUID(), text, tone };
    setToasts(all => [...all.slice(-3), toast]);
    setTimeout(() => setToasts(all => all.filter(({ id }) => id !== toast.id)), 6000);
  }, []);

  const bootstrap: Bootstrap | undefined = membership && 'bootstrap' in membership ? membership.bootstrap : undefined;
  const place = placeOf(route, bootstrap, before.current);
  before.current = place;
  const features = useFeatures(registry, bootstrap, place, signedIn ? (session as Session).env_id : null);

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

  if (liveState === 'ended' && route.name !== 'sign-out') return <SessionEndedPage loginUrl={client.loginUrl(hash || '#/')} />;
  if (route.name === 'sign-out')
    return (
      <SignedOutPage
        key={String(route.everywhere)}
        client={client}
        session={session}
        everywhere={route.everywhere === true}
        loginUrl={client.loginUrl('#/')}
      />
    );
  if (toLogin || session === undefined || session === 'absent')
    return (
      <Alone>
        <Loading label={toLogin ? 'Going to sign-in…' : 'Checking your session…'} />
      </Alone>
    );
  if (session instanceof Problem)
    return (
      <Alone>
        <Broken problem={session} retry={openSession} />
      </Alone>
    );
  if (!membership)
    return (
      <Alone>
        <Loading label="Loading your organizations…" />
      </Alone>
    );

  return (
    <ConsoleState
      value={{ config, client, registry, members, audit, live, session, bootstrap, services, features, route, place, refresh, notify }}
    >
      <Shell membership={membership} settle={settle} liveState={liveState} />
      <Toasts toasts={toasts} />
    </ConsoleState>
  );
}

function isMember(bootstrap: Bootstrap): boolean {
  return bootstrap.platform_admin || bootstrap.orgs.length > 0;
}

/** Lifecycle of tenants, services and verticals moves the rail; measurements do not. */
function changesNavigation(type: string): boolean {
  return !type.endsWith(':snapshot');
}

function Alone({ children }: { children: React.ReactNode }) {
  return <main className="alone">{children}</main>;
}
