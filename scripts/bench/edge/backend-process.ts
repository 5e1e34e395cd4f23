import { once } from 'node:events';
import { createServer } from 'node:https';
import { createServer as createTcp, type AddressInfo, type Server } from 'node:net';

/*
 * What the ingress and its peers stand before: a small JSON answer over TLS on kept connections, and bytes without end on a bare port. Told
 * its certificates in an IPC message, it tells its ports.
 */

export interface BackendOrder {
  readonly certificates: readonly { readonly cert: string; readonly key: string }[];
}
export interface BackendPorts {
  readonly tls: number;
  readonly bare: number;
}

const BODY = JSON.stringify({ items: Array.from({ length: 4 }, (_, id) => ({ id, name: `order ${id}`, state: 'open' })), more: null });
const CHUNK = Buffer.alloc(1_048_576);

async function serve({ certificates }: BackendOrder): Promise<BackendPorts> {
  const tls = createServer(
    {
      cert: certificates.map(({ cert }) => cert),
      key: certificates.map(({ key }) => key),
      minVersion: 'TLSv1.3',
      keepAliveTimeout: 600_000,
    },
    (_, res) => res.writeHead(200, { 'content-type': 'application/json', 'content-length': BODY.length }).end(BODY),
  );
  const bare = createTcp(socket => {
    const more = () => {
      while (!socket.destroyed && socket.write(CHUNK));
    };
    socket.on('error', () => socket.destroy()).on('drain', more);
    // What comes first is a ClientHello, as a whole.
    socket.once('data', more).resume();
  });
  return { tls: await portOf(tls), bare: await portOf(bare) };
}

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

process.once('message', async order => process.send?.(await serve(order as BackendOrder)));
process.once('disconnect', () => process.exit());
