import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import type { LiveChannel } from '../../api/live/live-channel.ts';
import type { Bootstrap, RegistryApi, ServiceEntry } from '../../api/registry-api.ts';
import { MEMBERSHIP_WAITS, type Membership, settleMembership, sleep } from '../navigation/gates.ts';
import { coalesced } from './coalesced.ts';
import { RECONNECTED } from './use-loaded.ts';

interface Asked {
  readonly registry: RegistryApi;
  readonly live: LiveChannel;
  /** Events that may move the navigation. */
  readonly types: readonly string[];
  readonly signedIn: boolean;
  /** Who follows an invitation is no member yet: there is nothing to wait for. */
  readonly invited: boolean;
}

/** G1: what the person belongs to and which services there are, and what the live channel changes of it later. */
export function useMembership({ registry, live, types, signedIn, invited }: Asked) {
  const [membership, setMembership] = useState<Membership>();
  const [services, setServices] = useState<readonly ServiceEntry[]>();
  const comesInvited = useRef(false);
  comesInvited.current = invited;
  const settle = useCallback(async () => {
    setMembership(undefined);
    setMembership(await settleMembership(() => registry.bootstrap(), sleep, comesInvited.current ? [] : MEMBERSHIP_WAITS));
  }, [registry]);

  const refresh = useCallback(async () => {
    const [bootstrap, entries] = await Promise.allSettled([registry.bootstrap(), registry.services()]);
    if (bootstrap.status === 'fulfilled')
      setMembership({ kind: isMember(bootstrap.value) ? 'member' : 'not_member', bootstrap: bootstrap.value });
    if (entries.status === 'fulfilled') setServices(entries.value);
  }, [registry]);

  useEffect(() => {
    if (!signedIn) return;
    void settle();
    registry.services().then(setServices, () => setServices([]));
    const soon = coalesced(refresh, 400);
    const unsubscribe = live.subscribe(types, ({ type }) => {
      if (changesNavigation(type)) soon();
    });
    live.open();
    return () => {
      unsubscribe();
      live.close();
    };
  }, [signedIn, settle, refresh, registry, live, types]);

  return { membership, services, settle, refresh, liveState: useLiveState(live, refresh) };
}

/** What happened while the channel was away was told to nobody here: everything is read again. */
function useLiveState(live: LiveChannel, refresh: () => Promise<void>) {
  const state = useSyncExternalStore(
    useCallback(changed => live.watch(changed), [live]),
    () => live.state,
  );
  const connectedOnce = useRef(false);
  useEffect(() => {
    if (state !== 'connected') return;
    if (connectedOnce.current) {
      void refresh();
      dispatchEvent(new Event(RECONNECTED));
    }
    connectedOnce.current = true;
  }, [state, refresh]);
  return state;
}

function isMember(bootstrap: Bootstrap): boolean {
  return bootstrap.platform_admin || bootstrap.orgs.length > 0;
}

/** Lifecycle of tenants, services and verticals moves the rail; measurements do not. */
function changesNavigation(type: string): boolean {
  return !type.endsWith(':snapshot');
}
