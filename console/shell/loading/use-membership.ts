import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { Problem } from '../../api/gateway/problem.ts';
import type { LiveChannel } from '../../api/live/live-channel.ts';
import type { Bootstrap, RegistryApi, ServiceEntry } from '../../api/registry-api.ts';
import { MEMBERSHIP_WAITS, type Membership, settleMembership, sleep } from '../navigation/gates.ts';
import { coalesced } from './coalesced.ts';
import { Retry } from './retry.ts';
import { READ_AGAIN } from './use-loaded.ts';

/** However often something is said to be missed, everything on screen is not read more often than this. */
const EVERYTHING_PAUSE_MS = 1_000;

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
  const retry = useRef<Retry>(undefined);
  const [asked, shown] = [useRef(0), useRef(0)];
  const settling = useRef(false);

  const refresh = useCallback(async () => {
    const turn = ++asked.current;
    retry.current?.begun();
    const [bootstrap, entries] = await Promise.allSettled([registry.bootstrap(), registry.services()]);
    // An answer that was overtaken by a later one says nothing any more.
    if (turn < shown.current) return;
    shown.current = turn;
    if (bootstrap.status === 'fulfilled') {
      const member = isMember(bootstrap.value);
      if (member || !settling.current) setMembership({ kind: member ? 'member' : 'not_member', bootstrap: bootstrap.value });
    }
    if (entries.status === 'fulfilled') setServices(entries.value);
    const troubled = [bootstrap, entries].some(answer => answer.status === 'rejected' && Problem.of(answer.reason).passing);
    if (troubled) retry.current?.failed();
    else retry.current?.settled();
  }, [registry]);

  const settle = useCallback(async () => {
    setMembership(undefined);
    settling.current = true;
    const settled = await settleMembership(() => registry.bootstrap(), sleep, comesInvited.current ? [] : MEMBERSHIP_WAITS);
    settling.current = false;
    // What an event had read meanwhile is newer.
    setMembership(heard => (heard?.kind === 'member' ? heard : settled));
    if (settled.kind === 'unknown') retry.current?.failed();
  }, [registry]);

  useEffect(() => {
    if (!signedIn) return;
    const trying = new Retry(() => void refresh());
    retry.current = trying;
    void settle();
    registry.services().then(setServices, () => {
      setServices([]);
      trying.failed();
    });
    const soon = coalesced(refresh, 400);
    const unsubscribe = live.subscribe(types, ({ type }) => {
      if (changesNavigation(type)) soon();
    });
    const everything = coalesced(async () => {
      dispatchEvent(new Event(READ_AGAIN));
      await refresh();
    }, EVERYTHING_PAUSE_MS);
    const unwatch = live.whenMissed(everything);
    live.open();
    return () => {
      unwatch();
      unsubscribe();
      live.close();
      trying[Symbol.dispose]();
      retry.current = undefined;
    };
  }, [signedIn, settle, refresh, registry, live, types]);

  return { membership, services, settle, refresh, liveState: useLiveState(live) };
}

function useLiveState(live: LiveChannel) {
  return useSyncExternalStore(
    useCallback(changed => live.watch(changed), [live]),
    () => live.state,
  );
}

function isMember(bootstrap: Bootstrap): boolean {
  return bootstrap.platform_admin || bootstrap.orgs.length > 0;
}

/** Lifecycle of tenants, services and verticals moves the rail; measurements do not. */
function changesNavigation(type: string): boolean {
  return !type.endsWith(':snapshot');
}
