import { definePlugin } from '@platform/sdk';
import { eventBus } from '../contract/index.ts';
import { Acceptance } from './produce/acceptance.ts';
import { Admission } from './produce/admission.ts';
import { Appender } from './stream/appender.ts';
import { Consumers } from './consume/consumers.ts';
import { EventContracts } from './contracts/event-contracts.ts';
import { forgetDeparted } from './upkeep/departed.ts';
import { Counters } from './upkeep/counters.ts';
import { DeadLetters } from './consume/dead-letters.ts';
import { EventStreams } from './consume/event-streams.ts';
import { Gaps } from './consume/gaps.ts';
import { GroupCommit } from './produce/group-commit.ts';
import { Groups } from './consume/groups.ts';
import { Inbox } from './inbox/inbox.ts';
import { Leases } from './consume/leases.ts';
import { Producer } from './produce/producer.ts';
import { Reader } from './consume/reader.ts';
import { Reaper } from './upkeep/reaper.ts';
import { InboxRelay } from './inbox/relay.ts';
import { Replays } from './consume/replays.ts';
import { Retention } from './upkeep/retention.ts';
import { Schedule } from './schedule/schedule.ts';
import { Scheduler } from './schedule/scheduler.ts';
import { Settlement } from './consume/settlement.ts';
import { StoreLife } from './upkeep/store-life.ts';
import { Streams } from './stream/streams.ts';
import { Wake } from './stream/wake.ts';

export default definePlugin(eventBus, {
  migrations: new URL('../migrations/', import.meta.url),

  async setup(ctx) {
    const counters = new Counters();
    const wake = ctx.own(await Wake.open(ctx));
    const inbox = new Inbox(ctx);
    const schedule = new Schedule(ctx);
    const contracts = new EventContracts(ctx);
    const { life, connection } = await StoreLife.open(ctx.kv);
    ctx.own(connection);
    const appender = new Appender(life, wake);
    const commit = ctx.own(new GroupCommit(ctx, inbox, appender, counters));
    const relay = new InboxRelay(ctx, { inbox, appender, commit, life });
    const deadLetters = new DeadLetters(ctx, counters);
    const replays = new Replays(ctx, wake, commit, deadLetters);
    const groups = new Groups(ctx);
    const parts = { ctx, reader: new Reader(ctx, deadLetters), groups, gaps: new Gaps(ctx), wake, counters };
    const consumers = new Consumers(parts);
    const admission = new Admission(ctx);
    const acceptance = new Acceptance(ctx, admission, contracts);
    const producer = new Producer(ctx, commit, acceptance);
    const scheduler = new Scheduler(ctx, acceptance, schedule);
    const settlement = new Settlement(ctx, { leases: new Leases(ctx), commit, deadLetters, counters });
    const sse = new EventStreams(parts, consumers);
    const streams = new Streams(ctx, { inbox, deadLetters, schedule, counters });
    const reaper = new Reaper(ctx, { wake, deadLetters, schedule, relay });
    const retention = new Retention(ctx, { inbox, schedule, deadLetters });

    return {
      routes: {
        produce: request => producer.produce(request),
        produceBatch: request => producer.produceBatch(request),
        schedule: request => scheduler.schedule(request),
        listScheduled: request => scheduler.list(request),
        cancelScheduled: request => scheduler.cancel(request),
        consume: request => consumers.consume(request),
        closeGroup: request => consumers.closeGroup(request),
        consumeSse: request => sse.open(request),
        ack: request => settlement.ack(request),
        nack: request => settlement.nack(request),
        extend: request => settlement.extend(request),
        listDeadLetters: request => deadLetters.list(request),
        deadLetterRows: request => deadLetters.list(request),
        replayDeadLetters: request => replays.many(request),
        replayMatching: request => replays.matching(request),
        replay: request => replays.one(request),
        listStreams: request => streams.list(request),
        streamLag: request => streams.lag(request),
        listGroups: request => streams.listGroups(request),
        overview: request => streams.overview(request),
        metrics: () => streams.metrics(),
        keepEventContract: request => contracts.keep(request),
      },
      on: { environmentChanged: ({ payload }) => admission.environmentChanged(payload) },
      jobs: {
        relay: signal => relay.poll(signal),
        reap: signal => reaper.reap(signal),
        trim: signal => retention.trim(signal),
        sweepGroups: signal => groups.sweep(signal),
        retention: signal => retention.sweep(signal),
      },
      ready: async signal => {
        await contracts.load();
        ctx.catalog.follow(services => forgetDeparted(services, { contracts, groups }));
        ctx.own(await relay.listen());
        await relay.poll(signal);
      },
    };
  },
});
