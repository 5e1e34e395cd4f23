import { defineContract, definePlugin, post, Type } from '@platform/sdk';
import { as, boot } from '@platform/testing';
import { microseconds, type Row } from '../../row.ts';

const Thing = Type.Object({ id: Type.String(), name: Type.String(), tags: Type.Array(Type.String()), count: Type.Integer() });
const echo = defineContract({
  id: 'echo',
  title: 'Echo',
  placement: { tier: 50 },
  actions: { 'echo:use': { title: 'Use it' } },
  problems: {},
  events: {},
  routes: { echo: post('/v1/echo', { summary: 'Say it again', gate: 'echo:use', body: Thing, returns: Thing }) },
});
const plugin = definePlugin(echo, { setup: () => ({ routes: { echo: async ({ body }) => body } }) });
const THING = { id: 'a', name: 'thing', tags: ['x', 'y', 'z'], count: 3 };

/** One small call: inside the process with JSON and both schemas, and over a kept mutual-TLS connection. */
export async function* callRows(): AsyncGenerator<Row> {
  await using host = await boot(plugin);
  const machine = as.machine('bench', 'echo:use');
  const client = host.by(machine);
  const inProcess = await microseconds(5_000, () => client.echo({ body: THING }));
  const pool = host.process;
  const { cert, key } = await host.workload('bench');
  const { Pool } = await import('undici');
  const dispatcher = new Pool(`https://127.0.0.1:${pool.port}`, {
    connections: 1,
    connect: { cert, key, ca: host.stores.authority.pq.files.rootCertificate, servername: 'echo.ops.sys.localhost', minVersion: 'TLSv1.3' },
  });
  const body = JSON.stringify(THING);
  const overTls = await microseconds(300, async () => {
    const response = await dispatcher.request({
      method: 'POST',
      path: '/v1/echo',
      headers: { host: 'echo.ops.sys.localhost', 'content-type': 'application/json' },
      body,
    });
    if (response.statusCode !== 200) throw new Error(await response.body.text());
    await response.body.dump();
  });
  await dispatcher.close();
  yield* [
    {
      name: 'call between plugins in process, JSON and both schemas, gate included',
      value: inProcess,
      unit: 'µs',
      limit: 10,
      peer: { name: 'over mutual TLS', value: overTls },
    },
    { name: 'the same call over mutual TLS (ML-DSA-65, kept connection, one at a time)', value: overTls, unit: 'µs' },
  ];
}
