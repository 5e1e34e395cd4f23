import { createServer, request, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '@platform/kernel/base/clock';
import { ServiceApp, type ServiceAppOptions } from '@platform/kernel/http/service-app';
import { defineContract, get, raw, type RawExchange, Type } from '@platform/sdk';
import { median, type Row } from '../../row.ts';

const Thing = Type.Object({ id: Type.String(), name: Type.String(), tags: Type.Array(Type.String()), count: Type.Integer() });
const THING = { id: 'a', name: 'thing', tags: ['x', 'y', 'z'], count: 3 };
const REQUESTS = 4_000;
const ROUNDS = 5;
const PLAIN = '/v1/hello/you';
const RAW = '/v1/raw/you';

/**
 * What Koa, its router and the doors add to a request, and what more routes add to that: CPU of one process that is server and client, the
 * client the same each time.
 */
export async function* routerRows(): AsyncGenerator<Row> {
  const bare: RequestListener = (_, res) => void res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(THING));
  const [few0, many0] = [listenerOf(0), listenerOf(110)];
  const servers = [
    { server: bare, path: PLAIN },
    { server: few0, path: PLAIN },
    { server: many0, path: PLAIN },
    { server: few0, path: RAW },
  ];
  const figures: number[][] = servers.map(() => []);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [index, { server, path }] of servers.entries()) {
      const figure = await cpuOf(server, path);
      if (round > 0) figures[index]?.push(figure);
    }
  }
  const [alone = 0, few = 0, many = 0, raws = 0] = figures.map(median);
  yield {
    name: 'a request through Koa, its router and a door, over plain HTTP, client included',
    value: few,
    unit: 'CPU µs',
    peer: { name: 'node:http alone', value: alone },
  };
  yield {
    name: 'the same in a service with 110 routes before it',
    value: many,
    unit: 'CPU µs',
    peer: { name: 'with its own alone', value: few },
  };
  yield {
    name: 'a body through a raw door, read and answered',
    value: raws,
    unit: 'CPU µs',
    peer: { name: 'a request without a body through a request door', value: few },
  };
}

function listenerOf(others: number): RequestListener {
  const open = { public: 'measured' };
  const routes = Object.fromEntries(
    Array.from({ length: others }, (_, index) => [
      `r${index}`,
      get(`/v1/a${index}/{id}`, { params: { id: Type.String() }, summary: 'One of many', gate: open }),
    ]),
  );
  const contract = defineContract({
    id: 'echo',
    title: 'Echo',
    placement: { tier: 50 },
    actions: {},
    problems: {},
    events: {},
    routes: {
      ...routes,
      hello: get('/v1/hello/{name}', { params: { name: Type.String() }, summary: 'Say something', gate: open, returns: Thing }),
      raw: raw('/v1/raw/{name}', { summary: 'Take a body', gate: open }),
    },
  });
  const mounted = Object.fromEntries(
    Object.entries(contract.routes).map(([name, route]) => [name, { route, handler: name === 'raw' ? said : async () => THING }]),
  );
  const manifest = { ...contract, vertical: 'platform', aliases: {}, hosts: [], env: 'any' };
  const silent = { debug() {}, info() {}, warn() {}, error: console.error };
  const app = new ServiceApp({
    manifest,
    routes: mounted,
    actions: {},
    log: silent,
    clock: systemClock,
    accepting: () => true,
    originOf: (host: string) => host,
  } as unknown as ServiceAppOptions);
  return (req, res) => app.handle(req, res);
}

async function said({ request }: RawExchange): Promise<Response> {
  const given = (await request.json()) as object;
  return new Response(JSON.stringify({ ...given, ...THING }), { headers: { 'content-type': 'application/json' } });
}

async function cpuOf(listener: RequestListener, path: string): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const begun = process.cpuUsage();
  for (let sent = 0; sent < REQUESTS; sent++) await ask(port, path);
  const { user, system } = process.cpuUsage(begun);
  server.closeAllConnections();
  await new Promise<void>(resolve => {
    server.close(() => resolve());
  });
  return (user + system) / REQUESTS;
}

function ask(port: number, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const body = path === RAW ? JSON.stringify(THING) : undefined;
    const described = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length };
    request({ port, host: '127.0.0.1', path, method: body === undefined ? 'GET' : 'POST', headers: described }, res => {
      if (res.statusCode !== 200) reject(new Error(`answered ${res.statusCode}`));
      res.resume().once('end', resolve);
    })
      .once('error', reject)
      .end(body);
  });
}
