import { eventBus } from '@platform/event-bus/contract';
import { identity } from '@platform/identity/contract';
import { registry } from '@platform/registry/contract';
import { definePlugin, reply } from '@platform/sdk';
import { gateway } from '../contract/index.ts';
import { auditSink } from './audit-sink.ts';
import { gauges } from './gauges.ts';
import { LiveDevices } from './live/live-devices.ts';
import { PushDevices } from './live/push-devices.ts';
import { servicesOf } from './services.ts';
import { Subscriptions } from './live/subscriptions.ts';

export default definePlugin(gateway, {
  uses: { registry, identity, bus: eventBus },
  setup(ctx) {
    const { reaper, signIn, endpoints, proxy, dispatch, delegate, scim, door, hub, sockets, guard, sessions, delegations, delegator } =
      servicesOf(ctx);
    const liveDevices = new LiveDevices(ctx, sessions.store);
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
        push: door.open(new PushDevices(ctx, guard).methods),
        pushDevices: request => liveDevices.of(request),
        action: door.open(dispatch.methods),
        delegateStart: door.open(delegate.start),
        delegatePoll: door.open(delegate.poll),
        delegateStatus: door.open(delegate.status),
        delegateSendLink: door.open(delegate.sendLink),
        scimUsers: door.open(scim.users),
        scimUser: door.open(scim.user),
        live: (connection, request) => sockets.serve(connection, request),
        audit: door.open(auditSink(ctx, sessions)),
        metrics: async () => reply(gauges(ctx.platform.build), { headers: { 'content-type': 'text/plain; version=0.0.4' } }),
      },
      on: {
        liveSys: delivery => reaper.registryChanged(delivery, hub.publish),
        accessChanged: async ({ payload }) => reaper.accessChanged(payload.subject_ids),
        'bff-session-reaper': ({ payload }) => reaper.identitySessionEnded(payload.session_id),
      },
      missed: () => hub.missed(),
      metrics: () => hub.figures,
      jobs: { heartbeat: () => reaper.heartbeat(), pollDelegations: () => delegations.pollDue() },
      checks: { delegator: async () => delegator.healthy },
      ready: () => {
        delegator.begin();
        return reaper.listen();
      },
    };
  },
});
