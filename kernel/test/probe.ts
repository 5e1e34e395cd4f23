import { type Context, definePlugin, reply, type UserCaller } from '@platform/sdk';
import { bus, sys } from './neighbours.ts';
import { probe } from './probe-contract.ts';

/** What happened inside the probe, for the test to read. */
export interface ProbeWorld {
  readonly calls: string[];
  readonly heard: { event: string; attempt: number; correlationId: string }[];
  sweep: () => Promise<void>;
  onHeard: (db: Context<typeof probe>['db']) => Promise<void>;
  /** Lets `/v1/slow-talk` go on. */
  readonly gate: PromiseWithResolvers<void>;
  /** Told how much of an upload has come. */
  onPiece: (size: number) => void;
  readonly entered: PromiseWithResolvers<void>;
  readonly left: PromiseWithResolvers<void>;
  readonly answer: PromiseWithResolvers<void>;
}

export const newWorld = (): ProbeWorld => ({
  calls: [],
  heard: [],
  sweep: async () => undefined,
  onHeard: async () => undefined,
  onPiece: () => undefined,
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
          drop: async ({ body }) => {
            world.calls.push(`drop ${body.text}`);
            return reply(
              { drop_id: context.platform.newId() },
              body.text === 'cookie' ? { headers: { 'set-cookie': 'sid=a-secret' } } : {},
            );
          },
          rawDrop: async exchange => {
            const text = await exchange.request.text();
            return exchange.once(text, async () => {
              world.calls.push(`raw drop ${text}`);
              return text === 'bad'
                ? new Response('no', { status: 400 })
                : Response.json({ drop_id: context.platform.newId() }, { status: 201 });
            });
          },
          rawForgot: async () => Response.json({ ok: true }),
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
          act: async ({ body: { action, params, target }, caller }) => ({
            answer: await context.actions.run(action, { params, targetEnvId: target, onBehalfOf: caller as UserCaller }),
          }),
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
          tickOf: async function* ({ params }) {
            yield { data: params };
          },
          raw: async ({ request, json, refusal, params }) => {
            if (params['name'] === 'lost') return refusal(Object.assign(new Error('terminating connection'), { code: '57P01' }));
            if (params['name'] === 'refused') return refusal(new Error('a secret of the inside'));
            world.calls.push(`raw ${params['name']}`);
            return Response.json({
              given: await (params['name'] === 'any' ? json({ of: 'any' }) : params['name'] === 'json' ? json() : request.text()),
            });
          },
          gated: async ({ caller, request }) => Response.json({ who: caller?.userId, size: (await request.arrayBuffer()).byteLength }),
          node: ({ res, body, caller }) => {
            world.calls.push('node');
            res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ who: caller?.userId, body: body.toString() }));
          },
          put: async ({ params, body }) => {
            world.entered.resolve();
            let size = 0;
            for await (const piece of body) {
              size += (piece as Buffer).length;
              world.onPiece(size);
            }
            return { name: params.name, size };
          },
          files: async ({ request }) => new Response(`not a put: ${request.method}`),
          ticksRate: async function* () {
            yield { data: 1 };
          },
          talkRate: async connection => {
            connection.accept();
            connection.close(1000);
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

/** The probe as a plugin of some vertical: the host treats its pages, scopes and names accordingly. It has no doors of the platform alone. */
export function probeOf(vertical: string, world?: ProbeWorld): ReturnType<typeof probePlugin> {
  const plugin = probePlugin(world);
  const routes = Object.fromEntries(Object.entries(plugin.contract.routes).filter(([, { door }]) => door !== 'raw' && door !== 'node'));
  return { ...plugin, contract: { ...plugin.contract, routes, base: { ...plugin.contract.base, vertical } } } as unknown as ReturnType<
    typeof probePlugin
  >;
}
