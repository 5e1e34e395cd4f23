/*
 * What the types must refuse, for ever: each `@ts-expect-error` below is a law of the contract language, and this file stops compiling
 * when one of them no longer holds. Nothing here runs.
 */
import {
  counter,
  defineContract,
  definePlugin,
  del,
  event,
  gauge,
  get,
  Page,
  PageQuery,
  post,
  reply,
  subscribe,
  Type,
} from '@platform/sdk';

const Thing = Type.Object({ thing_id: Type.String(), name: Type.String() });

const things = defineContract({
  id: 'things',
  title: 'Things',
  placement: { tier: 50 },
  config: Type.Object({ days: Type.Integer({ env: 'PLATFORM_THINGS_DAYS', default: 3 }) }),
  actions: {
    'things:read': { title: 'See things' },
    'things:ingest': { title: 'Send things', principals: ['machine'] },
    'things:own': { title: 'Own things', principals: ['user', 'delegated'] },
  },
  problems: { thing_taken: { status: 409, title: 'Taken', retry: 'never' } },
  metrics: { made: counter('Things made', { labels: ['outcome'] }), waiting: gauge('Things that wait') },
  events: { 'platform:things:thing:made': event('A thing was made', Thing) },
  routes: {
    makeThing: post('/v1/things', {
      summary: 'Make',
      gate: 'things:own',
      body: Type.Object({ name: Type.String() }),
      returns: Thing,
      problems: ['thing_taken'],
      emits: ['platform:things:thing:made'],
    }),
    getThing: get('/v1/things/{thing_id}', {
      params: { thing_id: Type.Union([Type.Literal('a'), Type.Literal('b')]) },
      summary: 'One',
      gate: { any: ['things:read', 'things:own'] },
      returns: Thing,
    }),
    listThings: get('/v1/things', {
      summary: 'All',
      gate: { public: 'Things are public knowledge' },
      query: PageQuery,
      returns: Page(Thing),
    }),
    ingest: post('/v1/ingest', { summary: 'Ingest', gate: 'things:ingest', body: Thing }),
    dropThing: del('/v1/things/{thing_id}', { summary: 'Drop', gate: 'things:own' }),
  },
});

export const plugin = definePlugin(things, {
  setup: ctx => ({
    routes: {
      makeThing: async ({ body, caller, params }) => {
        const name: string = body.name;
        const person: string = caller.userId;
        const days: number = ctx.config.days;
        // @ts-expect-error a member the schema does not have
        body.title;
        // @ts-expect-error a path without parameters has none
        params.thing_id;
        // @ts-expect-error an undeclared problem cannot be thrown
        ctx.problem('thing_lost');
        // @ts-expect-error a setting that is not declared
        ctx.config.hours;
        ctx.metrics.made.add(1, { outcome: 'new' });
        ctx.metrics.waiting.set(days);
        // @ts-expect-error a metric that is not declared
        ctx.metrics.lost.add(1);
        // @ts-expect-error a label that is not declared
        ctx.metrics.made.add(1, { outcome: 'new', person });
        // @ts-expect-error without its label
        ctx.metrics.made.add(1);
        // @ts-expect-error a metric without labels takes none
        ctx.metrics.waiting.set(days, { outcome: 'new' });
        // @ts-expect-error a gauge is set
        ctx.metrics.waiting.add(1);
        // @ts-expect-error a service nobody declared cannot be called
        ctx.services.registry;
        await ctx.db.tx(async tx => {
          // @ts-expect-error an undeclared event cannot be emitted
          await tx.emit('platform:things:thing:lost', 'env', { thing_id: person, name });
          // @ts-expect-error a payload of another shape
          await tx.emit('platform:things:thing:made', 'env', { thing_id: days });
          await tx.emit('platform:things:thing:made', 'env', { thing_id: person, name });
        });
        return reply({ thing_id: person, name }, { status: 201 });
      },
      getThing: async ({ params }) => {
        const id: 'a' | 'b' = params.thing_id;
        // @ts-expect-error a parameter that the path does not have
        params.thing;
        return { thing_id: id, name: '' };
      },
      listThings: async ({ caller, query }) => {
        // @ts-expect-error on a public route nobody is named
        caller.subject;
        const limit: number | undefined = query.limit;
        return { items: [], next_cursor: limit === undefined ? null : String(limit) };
      },
      ingest: async ({ caller }) => {
        const service: string = caller.service;
        // @ts-expect-error a workload is nobody's user id
        const person: string = caller.userId;
        void [service, person];
      },
      dropThing: async () => undefined,
    },
  }),
});

export const wrongAnswer = definePlugin(things, {
  // @ts-expect-error an answer that breaks its promise
  setup: () => ({
    routes: {
      makeThing: async () => ({ thing_id: 1 }),
      getThing: async () => ({ thing_id: '', name: '' }),
      listThings: async () => ({ items: [], next_cursor: null }),
      ingest: async () => undefined,
      dropThing: async () => undefined,
    },
  }),
});

export const missingHandler = definePlugin(things, {
  // @ts-expect-error every declared route needs a handler
  setup: () => ({ routes: {} }),
});

const listener = defineContract({
  id: 'listener',
  vertical: 'acme',
  title: 'Listener',
  placement: { tier: 50 },
  uses: { things: ['things:read'] },
  consumes: { made: subscribe('platform:things:thing:made', { family: 'things' }) },
  actions: {},
  problems: {},
  events: {},
  routes: {},
});

export const listening = definePlugin(listener, {
  uses: { things },
  setup: ctx => ({
    routes: {},
    on: {
      made: async ({ payload }) => {
        const id: string = payload.thing_id;
        // @ts-expect-error the payload is typed by the contract it comes from
        payload.title;
        await ctx.services.things.getThing({ params: { thing_id: id === 'a' ? 'a' : 'b' } });
        // @ts-expect-error a call without its path parameter
        await ctx.services.things.getThing({});
        // @ts-expect-error a call with another body
        await ctx.services.things.makeThing({ body: { title: 'x' } });
      },
    },
  }),
});

export const wrongGate = defineContract({
  id: 'wrong',
  title: 'Wrong',
  placement: { tier: 50 },
  actions: { 'wrong:use': { title: 'Use' } },
  problems: {},
  events: {},
  routes: {
    // @ts-expect-error a gate that is not among the actions
    one: get('/v1/one', { summary: 'One', gate: 'wrong:admin' }),
    // @ts-expect-error an emitted event that is not declared
    two: post('/v1/two', { summary: 'Two', gate: 'wrong:use', emits: ['platform:wrong:thing:made'] }),
    // @ts-expect-error a problem that is not declared
    three: post('/v1/three', { summary: 'Three', gate: 'wrong:use', problems: ['thing_taken'] }),
  },
});

export const controls = Type.Object({
  token: Type.String({ widget: 'secret_ref' }),
  // @ts-expect-error a control that the console does not draw
  poem: Type.String({ widget: 'poem' }),
  // @ts-expect-error choices that come from no route
  choice: Type.String({ optionsFrom: 7 }),
});

/** The context of a vertical has nothing that only the platform's own services may touch. */
export const vertical = definePlugin(listener, {
  uses: { things },
  setup: ctx => {
    // @ts-expect-error the key-value store
    void ctx.kv;
    // @ts-expect-error streams to other services
    void ctx.backends;
    // @ts-expect-error the keys of the certificate authority
    void ctx.authority;
    // @ts-expect-error processes of the machine
    void ctx.processes;
    // @ts-expect-error a listener of its own
    void ctx.listen;
    // @ts-expect-error events that no contract names
    void ctx.events;
    // @ts-expect-error tokens of others
    void ctx.tokens;
    // @ts-expect-error who sent a request to a raw door
    void ctx.auth;
    // @ts-expect-error the folder of everybody's data
    void ctx.platform.dataDir;
    // @ts-expect-error what other services would decide
    void ctx.policy.explain;
    // @ts-expect-error posts to any path
    void ctx.actions.callBack;
    void ctx.actions.run;
    return { routes: {}, on: { made: async () => undefined } };
  },
});

export const ofThePlatform = definePlugin(things, {
  setup: ctx => {
    void [ctx.kv, ctx.backends, ctx.authority, ctx.processes, ctx.listen, ctx.events, ctx.tokens, ctx.auth, ctx.platform.dataDir];
    void [ctx.policy.explain, ctx.actions.callBack, ctx.actions.run];
    return undefined as never;
  },
});
