import { World } from '../../../plugins/ingress/test/fixtures/world.ts';
import type { BackendPorts } from './backend-process.ts';

/*
 * The ingress with its stores, a registry and an authority to arrange, in a process of its own: first it tells {@link IngressReady}, then
 * it hears where the backend is, says so to itself, and tells `ready`.
 */

export interface IngressReady {
  readonly port: number;
  /** The root that browsers trust. */
  readonly root: string;
  /** For the backend: what this ingress trusts, and what its peers can read. */
  readonly certificates: readonly { readonly cert: string; readonly key: string }[];
}

const world = await World.start();
const { pq, classical } = world.host.stores.authority;
const names = ['dns:echo.ops.sys.localhost', 'dns:localhost'];
const certificates = await Promise.all(
  [pq, classical].map(async hierarchy => {
    const { chain, key } = await hierarchy.issue({ commonName: 'echo.ops.sys.localhost', names, usages: ['server'], days: 1 });
    return { cert: chain, key: key as string };
  }),
);

process.once('message', async ports => {
  const { tls, bare } = ports as BackendPorts;
  await world.serveElsewhere('echo', tls);
  await world.serveElsewhere('web', bare);
  process.send?.('ready');
});
process.once('disconnect', async () => {
  await world[Symbol.asyncDispose]();
  process.exit();
});
process.send?.({ port: world.port, root: classical.files.rootCertificate.toString(), certificates } satisfies IngressReady);
