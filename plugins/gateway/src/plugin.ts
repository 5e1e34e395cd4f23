import { identity } from '@platform/identity/contract';
import { registry } from '@platform/registry/contract';
import { definePlugin, type Delivery, reply } from '@platform/sdk';
import { gateway } from '../contract/index.ts';
import { Apps } from './apps.ts';
import { auditSink } from './audit-sink.ts';
import { DelegatedTokens } from './delegated-tokens.ts';
import { Door } from './door.ts';
import { FamilyFeeds } from './family-feeds.ts';
import { gauges } from './gauges.ts';
import { Guard } from './guard.ts';
import { Issuer } from './issuer.ts';
import { LiveAccess } from './live-access.ts';
import { LiveHub } from './live-hub.ts';
import { LiveSockets } from './live-socket.ts';
import { ServiceProxy } from './service-proxy.ts';
import { ProxyRules } from './proxy-rules.ts';
import { Reaper } from './reaper.ts';
import { Rooms } from './rooms.ts';
import { ServiceEnablement } from './service-enablement.ts';
import { SessionEndpoints } from './session-endpoints.ts';
import { Sessions } from './sessions.ts';
import { SignIn } from './sign-in.ts';
import { Subscriptions } from './subscriptions.ts';

export default definePlugin(gateway, {
  uses: { registry, identity },
  setup(ctx) {
    const apps = new Apps(ctx);
    const issuer = new Issuer(ctx);
    const sessions = new Sessions(ctx, issuer);
    const guard = new Guard(ctx, { apps, sessions });
    const access = new LiveAccess(ctx);
    const hub = new LiveHub(ctx, access);
    const rooms = ctx.own(new Rooms(ctx));
    const sockets = new LiveSockets(ctx, { guard, hub, rooms });
    const delegated = new DelegatedTokens(ctx, { issuer, sessions });
    const enablement = new ServiceEnablement(ctx);
    const feeds = ctx.own(new FamilyFeeds(ctx, { hub, declared: Object.values(gateway.base.consumes).map(({ family }) => family) }));
    const reaper = new Reaper(ctx, { sessions, hub, sockets, delegated, access, enablement, feeds });
    const signIn = new SignIn(ctx, { apps, issuer, sessions });
    const endpoints = new SessionEndpoints(ctx, { guard, sessions, access, signIn });
    const proxy = new ServiceProxy(ctx, { apps, guard, rules: new ProxyRules(ctx), enablement, delegated, sessions });
    const door = new Door(ctx, apps);
    const live = (delivery: Delivery<Readonly<Record<string, unknown>>>) => hub.publish(delivery);
    return {
      routes: {
        login: door.open({ GET: (exchange, extra) => signIn.login(exchange, extra) }, { pages: true }),
        signUp: door.open({ GET: (exchange, extra) => signIn.signUp(exchange, extra) }, { pages: true }),
        callback: door.open({ GET: (exchange, extra) => signIn.callback(exchange, extra) }, { pages: true }),
        session: door.open(endpoints.session),
        signOut: door.open(endpoints.signOut),
        refresh: door.open(endpoints.refresh),
        sessions: door.open(endpoints.all),
        oneSession: door.open(endpoints.one),
        proxyRoot: door.open(proxy.methods),
        proxy: door.open(proxy.methods),
        subscription: door.open(new Subscriptions(ctx, { guard, hub }).methods),
        live: (connection, request) => sockets.serve(connection, request),
        audit: door.open(auditSink(ctx, sessions)),
        metrics: async () => reply(gauges(ctx.platform.build), { headers: { 'content-type': 'text/plain; version=0.0.4' } }),
      },
      on: {
        liveSys: delivery => reaper.registryChanged(delivery, live),
        liveIdentity: live,
        liveApp: live,
        liveNotification: live,
        liveAcme: live,
        liveFunc: live,
        liveStat: live,
        liveWorkflow: live,
        accessChanged: async ({ payload }) => reaper.accessChanged(payload.subject_ids),
        'bff-session-reaper': ({ payload }) => reaper.identitySessionEnded(payload.session_id),
      },
      jobs: { heartbeat: () => reaper.heartbeat(), followFamilies: () => feeds.follow() },
      checks: { delegator: async () => delegated.healthy },
      ready: () => reaper.listen(),
    };
  },
});
