import { definePlugin } from '@platform/sdk';
import { eventBus } from '../contract/index.ts';
import { Admission } from './admission.ts';
import { Appender } from './appender.ts';
import { Consumers } from './consumers.ts';
import { Counters } from './counters.ts';
import { DeadLetters } from './dead-letters.ts';
import { EventStreams } from './event-streams.ts';
import { GroupCommit } from './group-commit.ts';
import { Groups } from './groups.ts';
import { Inbox } from './inbox.ts';
import { Producer } from './producer.ts';
import { Reader } from './reader.ts';
import { Reaper } from './reaper.ts';
import { InboxRelay } from './relay.ts';
import { Retention } from './retention.ts';
import { Settlement } from './settlement.ts';
import { Streams } from './streams.ts';
import { Wake } from './wake.ts';

export default definePlugin(eventBus, {
  migrations: new URL('../migrations/', import.meta.url),

  async setup(ctx) {
    const counters = new Counters();
    const wake = ctx.own(await Wake.open(ctx));
    const inbox = new Inbox(ctx);
    const appender = new Appender(ctx, wake);
    const commit = new GroupCommit(ctx, inbox, appender, counters);
    const relay = new InboxRelay(ctx, inbox, appender, commit);
    const deadLetters = new DeadLetters(ctx, wake, commit, counters);
    const groups = new Groups(ctx);
    const parts = { ctx, reader: new Reader(ctx, deadLetters), groups, wake, counters };
    const consumers = new Consumers(parts);
    const admission = new Admission(ctx);
    const producer = new Producer(ctx, commit, admission);
    const settlement = new Settlement(ctx, commit, deadLetters, counters);
    const sse = new EventStreams(parts, consumers);
    const streams = new Streams(ctx, inbox, deadLetters, counters);
    const reaper = new Reaper(ctx, wake, deadLetters);
    const retention = new Retention(ctx, inbox, deadLetters);

    return {
      routes: {
        produce: request => producer.produce(request),
        produceBatch: request => producer.produceBatch(request),
        consume: request => consumers.consume(request),
        closeGroup: request => consumers.closeGroup(request),
        consumeSse: request => sse.open(request),
        ack: request => settlement.ack(request),
        nack: request => settlement.nack(request),
        listDeadLetters: request => deadLetters.list(request),
        replayDeadLetters: request => deadLetters.replayMany(request),
        replay: request => deadLetters.replayOne(request),
        listStreams: request => streams.list(request),
        streamLag: request => streams.lag(request),
        listGroups: request => streams.listGroups(request),
        overview: request => streams.overview(request),
        metrics: () => streams.metrics(),
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
        ctx.own(await relay.listen());
        await relay.poll(signal);
      },
    };
  },
});
