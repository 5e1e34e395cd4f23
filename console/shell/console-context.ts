import { createContext, useContext } from 'react';
import type { AuditTrail } from '../api/audit-trail.ts';
import type { ConsoleConfig } from '../api/gateway/console-config.ts';
import type { GatewayClient } from '../api/gateway/gateway-client.ts';
import type { LiveChannel } from '../api/live/live-channel.ts';
import type { MembersApi } from '../api/members-api.ts';
import type { Bootstrap, RegistryApi, ServiceEntry } from '../api/registry-api.ts';
import type { Session } from '../api/gateway/session.ts';
import type { Tone } from '../api/page-def.ts';
import type { Place } from './navigation/place.ts';
import type { Route } from './navigation/route.ts';

/** What every screen may use. Nothing here outlives the page. */
export interface ConsoleContext {
  readonly config: ConsoleConfig;
  readonly client: GatewayClient;
  readonly registry: RegistryApi;
  readonly members: MembersApi;
  readonly audit: AuditTrail;
  readonly live: LiveChannel;
  readonly session: Session;
  readonly bootstrap: Bootstrap | undefined;
  /** `undefined` until the navigation has answered once. */
  readonly services: readonly ServiceEntry[] | undefined;
  /** Of the environment the operator stands in. */
  readonly features: Readonly<Record<string, boolean>>;
  readonly route: Route;
  readonly place: Place;
  /** Asks bootstrap and navigation again. */
  refresh(): Promise<void>;
  notify(text: string, tone?: Tone): void;
}

export const ConsoleState = createContext<ConsoleContext | undefined>(undefined);

export function useConsole(): ConsoleContext {
  const state = useContext(ConsoleState);
  if (!state) throw new Error('This part of the console stands outside of it.');
  return state;
}
