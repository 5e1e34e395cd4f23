import { gateway } from '../contract/index.ts';
import { ActionDispatch } from './proxy/action-dispatch.ts';
import { AppInstances } from './apps/app-instances.ts';
import { Apps } from './apps/apps.ts';
import { AuthHosts } from './apps/auth-hosts.ts';
import { DelegatedTokens } from './proxy/delegated-tokens.ts';
import { DelegationEndpoints } from './delegation/delegation-endpoints.ts';
import { Delegations } from './delegation/delegations.ts';
import { Delegator } from './delegation/delegator.ts';
import { ScimProxy } from './delegation/scim-proxy.ts';
import { Staff } from './delegation/staff.ts';
import { Door } from './door.ts';
import { FamilyFeeds } from './live/family-feeds.ts';
import { Guard } from './session/guard.ts';
import { Issuer } from './issuer.ts';
import { LiveAccess } from './live/live-access.ts';
import { LiveHub } from './live/live-hub.ts';
import { LiveSockets } from './live/live-socket.ts';
import { ServiceProxy } from './proxy/service-proxy.ts';
import { ProxyRules } from './proxy/proxy-rules.ts';
import { SessionReaper } from './session-reaper.ts';
import { Rooms } from './live/rooms.ts';
import { ServiceEnablement } from './proxy/service-enablement.ts';
import { SessionEndpoints } from './session/session-endpoints.ts';
import { Sessions } from './session/sessions.ts';
import { SignIn } from './session/sign-in.ts';
import { Upstream } from './proxy/upstream.ts';
import type { Ctx } from './context.ts';

/** Everything alive in one gateway process, made once and in the order of need. */
export function servicesOf(ctx: Ctx) {
  const hosts = new AuthHosts(ctx);
  const instances = new AppInstances(ctx, hosts);
  const apps = new Apps(ctx, instances);
  const issuer = new Issuer(ctx);
  const sessions = new Sessions(ctx, issuer);
  const guard = new Guard(ctx, { apps, sessions });
  const access = new LiveAccess(ctx);
  const hub = new LiveHub(ctx, access);
  const rooms = ctx.own(new Rooms(ctx));
  const sockets = new LiveSockets(ctx, { guard, hub, rooms });
  const delegator = new Delegator(ctx, issuer);
  const delegated = new DelegatedTokens(ctx, { delegator, issuer, sessions });
  const delegations = new Delegations(ctx, { delegator, hosts, issuer, sessions });
  const staff = new Staff(ctx);
  const upstream = new Upstream(ctx, { delegated, sessions });
  const enablement = new ServiceEnablement(ctx);
  const rules = new ProxyRules(ctx);
  const feeds = ctx.own(
    new FamilyFeeds(ctx, {
      hub,
      declared: Object.values(gateway.base.consumes).flatMap(({ event, family }) => (event === '*' ? [family] : [])),
    }),
  );
  const reaper = new SessionReaper(ctx, { sessions, hub, sockets, delegated, access, enablement, feeds, instances });
  const signIn = new SignIn(ctx, { apps, issuer, sessions });
  const endpoints = new SessionEndpoints(ctx, { guard, sessions, access, signIn });
  const proxy = new ServiceProxy(ctx, { apps, guard, rules, enablement, upstream, delegations });
  const dispatch = new ActionDispatch(ctx, { access, apps, enablement, guard, rules, upstream });
  const delegate = new DelegationEndpoints(ctx, { guard, staff, delegations });
  const scim = new ScimProxy(ctx, { apps, rules, guard, staff, delegator, enablement, hosts, upstream });
  const door = new Door(ctx, apps);
  return { reaper, signIn, endpoints, proxy, dispatch, delegate, scim, door, hub, sockets, guard, sessions, delegations, delegator };
}
