import type { Authority } from '../../../identity/certificates/trust-anchors.ts';
import type { Mint } from '../../../identity/workload.ts';
import type { Directory } from '../../../routing/directory.ts';
import { enroll } from './enrollment.ts';
import type { Bootstrap } from '../../boot/bootstrap.ts';

const CLIENT_DAYS = 365;
const LISTENER_DAYS = 90;

/**
 * How a process gets certificates. Beside the authority's files it signs its own first leafs (day-one 2); every other process enrolls
 * at the certificate authority with the secret it was started with, and renews with the certificate it has (G-K-09).
 */
export function mintFor({ bootstrap, authority, directory }: { bootstrap: Bootstrap; authority?: Authority; directory: Directory }): Mint {
  if (!authority) return request => enroll({ bootstrap, directory, request });
  return async ({ kind, workload, hostnames, csr }) => {
    const names = kind === 'listener' ? hostnames.map(host => `dns:${host}`) : [`uri:urn:platform:workload:${workload}`];
    const leaf = await (kind === 'database' ? authority.classical : authority.pq).issue({
      commonName: kind === 'client' ? `m2m-${workload}` : kind === 'database' ? `svc.${workload}` : (hostnames[0] ?? workload),
      names,
      usages: kind === 'listener' ? ['server'] : ['client'],
      days: kind === 'listener' ? LISTENER_DAYS : CLIENT_DAYS,
      csr,
    });
    authority.note(leaf);
    return leaf.chain;
  };
}
