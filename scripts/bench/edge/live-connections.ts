import { once } from 'node:events';
import type { TLSSocket } from 'node:tls';
import { TENANT, World } from '../../../plugins/ingress/test/fixtures/world.ts';
import type { Row, Size } from '../row.ts';

const HOST = 'echo.prod.live.localhost';
const [SOCKETS, AT_ONCE, DOWNLOADS] = [1_000, 20, 3];
const ROUNDS = { short: 5, long: 50 };
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';

/** A thousand WebSockets and running downloads, while everything that can change does. */
export async function* liveRows(size: Size): AsyncGenerator<Row> {
  await using world = await World.start();
  world.hosts.set(HOST, { service: 'echo', status: 'active' });
  const begun = async (path: string, headers = '') => {
    const socket = world.open(HOST);
    await once(socket, 'secureConnect');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\n${headers}\r\n`);
    await once(socket, 'data');
    return socket;
  };
  const sockets: TLSSocket[] = [];
  while (sockets.length < SOCKETS) sockets.push(...(await Promise.all(Array.from({ length: AT_ONCE }, () => begun('/live', UPGRADE)))));
  const downloads = await Promise.all(Array.from({ length: DOWNLOADS }, () => begun('/endless')));
  let over = 0;
  for (const socket of [...sockets, ...downloads]) socket.on('error', () => undefined).once('close', () => (over += 1));
  for (const download of downloads) download.resume();
  const before = downloads.map(({ bytesRead }) => bytesRead);
  for (let round = 0; round < ROUNDS[size]; round++) await change(world, sockets[0] as TLSSocket, round);
  let silent = 0;
  for (const socket of sockets.filter(({ destroyed }) => !destroyed)) {
    socket.write('still here');
    const [said] = (await once(socket, 'data')) as [Buffer];
    if (String(said) !== 'still here') silent += 1;
  }
  const stopped = downloads.filter(({ bytesRead }, index) => bytesRead <= (before[index] as number)).length;
  yield {
    name: 'of a thousand WebSockets and three running downloads dropped while everything changes',
    value: over + silent + stopped,
    unit: 'connections',
    limit: 0,
    note: `hosts, instances, certificates, settings and screening, ${ROUNDS[size]} times each`,
  };
  for (const socket of [...sockets, ...downloads]) socket.destroy();
}

/** Hosts, instances, certificates, settings and screening. */
async function change(world: World, seen: TLSSocket, round: number): Promise<void> {
  const thumbprint = Buffer.from(seen.getPeerX509Certificate()?.fingerprint256.replaceAll(':', '') ?? '', 'hex').toString('base64url');
  await world.kv.call('PUBLISH', 'revoked:changed', thumbprint);
  world.attributes.set(TENANT.env_id, { waf_mode: round % 2 ? 'off' : 'block', rate_limit_enabled: round % 2 === 0, rate_limit_rps: 1 });
  world.hosts.set(HOST, { service: 'echo', status: round % 2 ? 'active' : 'suspended' });
  await world.kv.call('PUBLISH', 'platform:sys:domain:changed', JSON.stringify({ scope: 'env', hostnames: [HOST] }));
  await world.changed('echo');
  await world.host.clock.advance('2s');
  // The change is there: a new connection finds it.
  const wanted = round % 2 ? 200 : 403;
  while ((await world.ask(HOST)).status !== wanted);
}
