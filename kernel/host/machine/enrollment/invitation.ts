import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { KeyValue } from '@platform/sdk';
import { type Bootstrap, HOST_WORKLOAD } from '../../boot/bootstrap.ts';
import { ConfigError } from '../../boot/configuration.ts';
import { publishEnrollment } from './enrollment.ts';

/** A machine has so long from its invitation to its first certificates. */
const LIFETIME_S = 900;

/**
 * What another machine must know to join: where the stores are, whom to trust, and a secret that the certificate authority takes from its
 * address and for its services alone (H-03). A secret as a whole.
 */
export interface Invitation {
  readonly ip: string;
  readonly domain: string;
  readonly production: boolean;
  readonly edge_port: number;
  readonly pq_mode: Bootstrap['pqMode'];
  readonly anchors: Bootstrap['anchors'];
  readonly database: Bootstrap['database'];
  readonly key_value_url: string;
  /** Services that it starts by itself. */
  readonly services: readonly string[];
  /** Services of the whole fleet. */
  readonly fleet_services: readonly string[];
  readonly enrollment: string;
}

/** Invites the machine at an address, and has the certificate authority know of it. */
export async function invite(
  kv: KeyValue,
  base: Bootstrap,
  { ip, services }: { ip: string; services: readonly string[] },
): Promise<Invitation> {
  const secret = randomBytes(32);
  const fleet = base.manifests.map(({ id }) => id);
  await publishEnrollment(kv, { ip, services: [HOST_WORKLOAD, ...fleet], secret, lifetimeS: LIFETIME_S });
  return {
    ip,
    domain: base.domain,
    production: base.production,
    edge_port: base.edgePort,
    pq_mode: base.pqMode,
    anchors: base.anchors,
    database: base.database,
    key_value_url: base.keyValueUrl,
    services,
    fleet_services: fleet,
    enrollment: secret.toString('base64url'),
  };
}

/** Reads it from a file that only its owner can read. */
export function readInvitation(path: string): Invitation {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode;
  if (mode === undefined) throw new ConfigError(`--join ${path}: there is no such file`);
  if ((mode & 0o077) !== 0) throw new ConfigError(`--join ${path}: others can read it; give it mode 0600, and ask for a new one`);
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Invitation;
  } catch {
    throw new ConfigError(`--join ${path}: it is no invitation of a platform`);
  }
}
