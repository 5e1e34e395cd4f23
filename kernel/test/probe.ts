import {
  type Context,
  counter,
  defineContract,
  definePlugin,
  del,
  event,
  gauge,
  get,
  histogram,
  Page,
  post,
  put,
  reply,
  socket,
  stream,
  subscribe,
  task,
  Type,
} from '@platform/sdk';

/*
 * A service for the kernel's own tests: every door, every kind of page, and routes that misbehave on purpose.
 */

const Thing = Type.Object({ thing_id: Type.String(), name: Type.String(), kind: Type.String(), version: Type.Integer() });
const open = { public: 'Nothing here is a secret' } as const;

/** The parts of the registry the kernel calls, so that a test can answer them. */
export const sys = defineContract({
  id: 'sys',
  title: 'Registry',
  placement: { tier: 1 },
  actions: {},
  problems: {},
  events: {},
  routes: {
    policySnapshot: get('/v1/internal/policy', {
      summary: 'Policy',
      gate: open,
      query: { service: Type.String(), env_id: Type.String() },
      returns: Type.Any(),
    }),
    policyUpsertSet: post('/v1/internal/policy/sets', { summary: 'Set', gate: open, body: Type.Any(), returns: Type.Any() }),
    policyUpsertRelation: post('/v1/internal/policy/relations', { summary: 'Relation', gate: open, body: Type.Any(), returns: Type.Any() }),
    policyUpsertAttribute: post('/v1/internal/policy/attributes', {
      summary: 'Attribute',
      gate: open,
      body: Type.Any(),
      returns: Type.Any(),
    }),
    policyPutAttributes: put('/v1/internal/policy/attributes', {
      summary: 'Attributes',
      gate: open,
      body: Type.Any(),
      returns: Type.Any(),
    }),
    policyRemove: post('/v1/internal/policy/remove', { summary: 'Remove', gate: open, body: Type.Any(), returns: Type.Any() }),
    registerVertical: post('/v1/verticals/register', { summary: 'Register', gate: open, body: Type.Any(), returns: Type.Any() }),
    recordAudits: post('/v1/audit/batch', { summary: 'Audit', gate: open, body: Type.Any(), returns: Type.Any() }),
    echo: get('/v1/echo', { summary: 'Echo', gate: open, returns: Type.Any() }),
  },
});

/** The parts of the event bus the kernel calls. */
export const bus = defineContract({
  id: 'bus',
  title: 'Event bus',
  placement: { tier: 1 },
  actions: {},
  problems: {},
  events: {},
  routes: {
    produceBatch: post('/v1/produce/batch', { summary: 'Produce', gate: open, body: Type.Any(), returns: Type.Any() }),
    consume: post('/v1/consume', { summary: 'Consume', gate: open, body: Type.Any(), returns: Type.Any() }),
    ack: post('/v1/ack', { summary: 'Ack', gate: open, body: Type.Any(), returns: Type.Any() }),
    nack: post('/v1/nack', { summary: 'Nack', gate: open, body: Type.Any(), returns: Type.Any() }),
  },
});

export const probe = defineContract({
  id: 'probe',
  title: 'Probe',
  uses: { sys: [], bus: [] },
  placement: { tier: 50 },
  actions: {
    'probe:things:read': { title: 'Read things', grants: 'read' },
    'probe:things:write': { title: 'Change things', grants: 'write' },
    'probe:work:run': { title: 'Run work', principals: ['machine'], bound: true },
    'probe:person:ask': { title: 'Ask as a person', principals: ['user', 'delegated'] },
    'probe:bound:read': { title: 'Read with a bound token', bound: true },
  },
  problems: { thing_taken: { status: 409, title: 'The name is taken', retry: 'never' } },
  events: { 'platform:probe:thing:created': event('A thing was made', Type.Object({ thing_id: Type.String(), name: Type.String() })) },
  consumes: { heard: subscribe('platform:sys:org:created', { family: 'sys' }) },
  jobs: {
    sweep: { summary: 'Sweeps', every: '1h', runs: 'fleet' },
    count: { summary: 'Counts', every: '1h', runs: 'process' },
  },
  metrics: {
    reminders: counter('Reminders by how they went', { labels: ['outcome'] }),
    open: gauge('Reminders that wait'),
    wait: histogram('How long a reminder waited', { unit: 'seconds', buckets: [1, 5] }),
  },
  tasks: { remind: task(Type.Object({ text: Type.String() }), { summary: 'Reminds somebody', lane: 'env', attempts: 1 }) },
  routes: {
    remind: post('/v1/remind', {
      summary: 'Queue a reminder',
      gate: 'probe:things:write',
      body: Type.Object({ text: Type.String() }),
      returns: Type.Any(),
    }),
    greet: get('/v1/greet', { summary: 'Greet', gate: open, returns: Type.Object({ hello: Type.String() }) }),
    whoami: get('/v1/whoami', { summary: 'Who calls', gate: 'probe:things:read', returns: Type.Any() }),
    anyone: get('/v1/anyone', { summary: 'Who calls, without a gate', gate: open, returns: Type.Any() }),
    listThings: get('/v1/things', {
      summary: 'List things',
      gate: { any: ['probe:things:read', 'probe:things:write'] },
      query: {
        kind: Type.Optional(Type.Union([Type.Literal('small'), Type.Literal('large')])),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
        cursor: Type.Optional(Type.String()),
        fresh: Type.Optional(Type.Boolean()),
      },
      returns: Page(Thing),
    }),
    createThing: post('/v1/things', {
      summary: 'Make a thing',
      gate: 'probe:things:write',
      env: 'own',
      body: Type.Object({
        name: Type.String({ minLength: 1, maxLength: 40 }),
        size: Type.Optional(Type.Integer({ minimum: 1 })),
        kind: Type.Optional(Type.Union([Type.Literal('small'), Type.Literal('large')])),
        notes: Type.Optional(Type.String({ maxLength: 1_000, description: 'What else is to be known' })),
        place: Type.Optional(Type.Object({ x: Type.Number(), y: Type.Number() })),
      }),
      returns: Thing,
      status: 201,
      limit: 1_024,
      problems: ['thing_taken'],
      emits: ['platform:probe:thing:created'],
    }),
    updateThing: put('/v1/things/{thing_id}', {
      summary: 'Rename a thing',
      gate: 'probe:things:write',
      env: 'own',
      body: Type.Object({ name: Type.String({ minLength: 1 }) }),
      returns: Thing,
    }),
    removeThing: del('/v1/things/{thing_id}', { summary: 'Remove a thing', gate: 'probe:things:write' }),
    archiveThing: post('/v1/things/{thing_id}/archive', { summary: 'Archive', gate: 'probe:things:write' }),
    readThing: get('/v1/things/{thing_id}', { summary: 'Read a thing', gate: 'probe:things:read', returns: Thing }),
    figures: get('/v1/figures', { summary: 'Figures', gate: 'probe:things:read', returns: Type.Object({ total: Type.Integer() }) }),
    issue: post('/v1/issue', { summary: 'Shows a secret once', gate: 'probe:things:write', idempotency: 'secret', returns: Type.Any() }),
    run: post('/v1/run', { summary: 'Run', gate: 'probe:work:run', returns: Type.Any() }),
    signedIn: get('/v1/signed-in', {
      summary: 'Any signed-in person',
      gate: { signedIn: 'Whoever has an account may ask' },
      returns: Type.Any(),
    }),
    person: get('/v1/person', { summary: 'Person', gate: 'probe:person:ask', returns: Type.Any() }),
    boundOnly: get('/v1/bound', { summary: 'Bound', gate: 'probe:bound:read', returns: Type.Any() }),
    targeted: get('/v1/targeted', { summary: 'Targeted', gate: 'probe:things:read', env: 'target', returns: Type.Any() }),
    broken: get('/v1/broken', { summary: 'Breaks', gate: open, returns: Type.Any() }),
    lying: get('/v1/lying', {
      summary: 'Answers another shape than it promised',
      gate: open,
      returns: Type.Object({ ok: Type.Boolean() }),
    }),
    foreign: post('/v1/foreign', { summary: 'Emits what it does not own', gate: open, returns: Type.Any() }),
    misshapen: post('/v1/misshapen', { summary: 'Emits a payload that does not fit', gate: open, returns: Type.Any() }),
    reaching: get('/v1/reaching', { summary: 'Reaches for a capability it did not declare', gate: open, returns: Type.Any() }),
    undeclared: get('/v1/undeclared', { summary: 'Throws an undeclared problem', gate: open, returns: Type.Any() }),
    stored: get('/v1/stored', { summary: 'Reads the database', gate: open, returns: Type.Any() }),
    asks: get('/v1/asks', { summary: 'Asks another service', gate: open, returns: Type.Any() }),
    tagged: get('/v1/tagged/{*rest}', { summary: 'The rest of the path', gate: open, returns: Type.Any() }),
    ticks: stream('/v1/ticks', { summary: 'Ticks', gate: 'probe:things:read' }),
    talk: socket('/v1/talk', { summary: 'Talk', gate: 'probe:things:read' }),
    closedTalk: socket('/v1/closed-talk', { summary: 'Refuses before it accepts', gate: 'probe:things:read', problems: ['thing_taken'] }),
    slowTalk: socket('/v1/slow-talk', { summary: 'Accepts late', gate: open }),
  },
  pages: {
    things: {
      kind: 'table',
      title: 'Things',
      source: 'listThings',
      columns: [
        { field: 'name', label: 'Name' },
        { field: 'kind', label: 'Kind', as: 'status', tones: { small: 'ok', large: 'warn' } },
      ],
      filters: ['kind'],
      create: 'createThing',
      update: 'updateThing',
      remove: 'removeThing',
      rowActions: [{ route: 'archiveThing', label: 'Archive', confirm: 'Archive it?', when: { field: 'kind', is: 'small' } }],
      live: ['platform:probe:thing:created'],
      nav: 2,
    },
    feed: { kind: 'feed', title: 'Feed', source: 'listThings', columns: [{ field: 'name', label: 'Name' }], nav: false },
    figures: {
      kind: 'stats',
      title: 'Figures',
      source: 'figures',
      items: [{ field: 'total', label: 'Total', as: 'number' }],
      scope: 'platform',
      nav: 1,
    },
    detail: { kind: 'detail', title: 'Detail', source: 'figures', fields: [{ field: 'total', label: 'Total' }], scope: 'org', nav: false },
    curve: {
      kind: 'chart',
      title: 'Curve',
      chart: 'line',
      source: 'figures',
      x: 'at',
      series: [{ field: 'total', label: 'Total' }],
      unit: 'things',
      nav: false,
    },
    make: { kind: 'form', title: 'Make', description: 'One at a time', submit: 'createThing', source: 'figures', nav: false },
    note: { kind: 'text', title: 'Note', text: 'Read this.', nav: false },
    both: {
      kind: 'tabs',
      title: 'Both',
      tabs: [
        { label: 'One', page: 'figures' },
        { label: 'Two', page: 'note' },
      ],
      nav: false,
    },
  },
});

/** What happened inside the probe, for the test to read. */
export interface ProbeWorld {
  readonly calls: string[];
  readonly heard: { event: string; attempt: number; correlationId: string }[];
  sweep: () => Promise<void>;
  onHeard: (db: Context<typeof probe>['db']) => Promise<void>;
  /** Lets `/v1/slow-talk` go on. */
  readonly gate: PromiseWithResolvers<void>;
  readonly entered: PromiseWithResolvers<void>;
  readonly left: PromiseWithResolvers<void>;
  readonly answer: PromiseWithResolvers<void>;
}

export const newWorld = (): ProbeWorld => ({
  calls: [],
  heard: [],
  sweep: async () => undefined,
  onHeard: async () => undefined,
  gate: Promise.withResolvers(),
  entered: Promise.withResolvers(),
  left: Promise.withResolvers(),
  answer: Promise.withResolvers(),
});

/** The probe as a plugin. Its things live in the world, not in a table: the kernel's own tables are enough. */
export function probePlugin(world: ProbeWorld = newWorld()) {
  return definePlugin(probe, {
    uses: { sys, bus },
    setup: context => {
      const things = new Map<string, { thing_id: string; name: string; kind: string; version: number }>();
      const thing = (id: string) => things.get(id) ?? { thing_id: id, name: 'a thing', kind: 'small', version: 3 };
      return {
        routes: {
          remind: async ({ body }) => {
            await context.db.tx(tx => tx.enqueue('remind', body));
            context.metrics.reminders.add(1, { outcome: 'queued' });
            context.metrics.open.set(3);
            context.metrics.wait.record(2);
            return { ok: true };
          },
          greet: async () => ({ hello: 'world' }),
          whoami: async ({ caller, tenant, correlationId, hostname, ip, targetEnvId, peer }) => ({
            caller,
            tenant,
            correlation_id: correlationId,
            hostname,
            ip,
            target: targetEnvId,
            peer: peer?.workload,
          }),
          signedIn: async ({ caller }) => ({ user: caller.userId }),
          anyone: async ({ tenant, hostname, ip, peer, correlationId }) => ({
            tenant,
            hostname,
            ip,
            peer: peer?.workload,
            correlation_id: correlationId,
          }),
          listThings: async ({ query }) => {
            world.calls.push(`list ${JSON.stringify(query)}`);
            return { items: [...things.values()], next_cursor: null };
          },
          createThing: async ({ body, caller }) => {
            world.calls.push(`create ${body.name}`);
            if (body.name === 'taken') throw context.problem('thing_taken', { detail: 'Choose another name.' });
            const made = { thing_id: context.platform.newId(), name: body.name, kind: body.kind ?? 'small', version: 1 };
            await context.db.tx(async tx => {
              await tx.emit('platform:probe:thing:created', caller.envId ?? '00000000-0000-7000-8000-000000000002', {
                thing_id: made.thing_id,
                name: made.name,
              });
              await tx.audit({
                action: 'probe.thing.created',
                envId: caller.envId ?? '00000000-0000-7000-8000-000000000002',
                caller,
                resource: { type: 'thing', id: made.thing_id },
              });
            });
            things.set(made.thing_id, made);
            if (body.name === 'held') await world.answer.promise;
            return made;
          },
          issue: async () => ({ secret: context.platform.newId() }),
          updateThing: async ({ params, body, ifMatch }) => {
            context.requireVersion(ifMatch, 3);
            world.calls.push(`update ${params.thing_id} ${body.name}`);
            return { ...thing(params.thing_id), name: body.name, version: 4 };
          },
          removeThing: async ({ params }) => void world.calls.push(`remove ${params.thing_id}`),
          archiveThing: async ({ params }) => void world.calls.push(`archive ${params.thing_id}`),
          readThing: async ({ params }) => thing(params.thing_id),
          figures: async () => ({ total: things.size }),
          run: async ({ caller }) => ({ subject: caller.subject, service: caller.service, bound: caller.bound }),
          person: async ({ caller }) => ({ user: caller.userId }),
          boundOnly: async () => ({ ok: true }),
          targeted: async ({ targetEnvId }) => ({ target: targetEnvId }),
          broken: async () => {
            throw new Error('a secret of the inside');
          },
          lying: async () => ({ ok: 'yes' }) as never,
          foreign: async () =>
            context.db.tx(async tx => tx.emit('platform:auth:user:created' as never, '00000000-0000-7000-8000-000000000002', {} as never)),
          misshapen: async () =>
            context.db.tx(async tx =>
              tx.emit('platform:probe:thing:created', '00000000-0000-7000-8000-000000000002', { thing_id: 7 } as never),
            ),
          reaching: async () => context.kv.call('PING'),
          undeclared: async () => {
            throw context.problem('no_such_problem' as never);
          },
          stored: async () => {
            const [row] = await context.db.sql<[{ one: number }]>`select 1 as one`;
            return row;
          },
          asks: async () => context.services.sys.echo(),
          tagged: async ({ params }) => reply(params, { headers: { 'x-kept': 'yes' } }),
          ticks: async function* ({ correlationId, signal }) {
            yield { id: '1', event: 'tick', data: { at: 1 } };
            yield { data: { correlationId, aborted: signal.aborted } };
          },
          talk: async (connection, { caller, correlationId }) => {
            connection.accept();
            connection.send({ hello: caller?.userId, correlationId });
            for await (const message of connection.messages) connection.send({ heard: message });
          },
          closedTalk: async () => {
            throw context.problem('thing_taken');
          },
          slowTalk: async connection => {
            world.entered.resolve();
            await Promise.race([world.gate.promise, connection.closed]);
            world.left.resolve();
            connection.accept();
            connection.close(1000);
          },
        },
        on: {
          heard: async delivery => {
            world.heard.push({ event: delivery.event, attempt: delivery.attempt, correlationId: delivery.correlationId });
            await world.onHeard(context.db);
          },
        },
        tasks: {
          remind: async ({ text }, { attempt, envId }) => {
            if (text === 'fail') throw new Error('nobody is there');
            world.calls.push(`remind ${text} ${attempt} ${envId}`);
          },
        },
        jobs: {
          sweep: async () => {
            world.calls.push('sweep');
            await world.sweep();
          },
          count: async () => void world.calls.push('count'),
        },
      };
    },
  });
}

/** The probe as a plugin of some vertical: the host treats its pages, scopes and names accordingly. */
export function probeOf(vertical: string, world?: ProbeWorld): ReturnType<typeof probePlugin> {
  const plugin = probePlugin(world);
  return { ...plugin, contract: { ...plugin.contract, base: { ...plugin.contract.base, vertical } } } as unknown as ReturnType<
    typeof probePlugin
  >;
}
