import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { type KeyValue, FLEET_KEYS, platformHost } from '@platform/sdk';
import { newId } from '../../../base/ids.ts';
import type { Manifest } from '../../../base/manifest.ts';
import type { Mint } from '../../../identity/workload.ts';
import type { Directory } from '../../../routing/directory.ts';
import type { Bootstrap } from '../../boot/bootstrap.ts';
import { ASKED_ROUTES } from '../../asked-routes.ts';

export const ENROLLMENT_HEADER = 'x-platform-bootstrap-enrollment';
const LIFETIME_S = 120;
const ATTEMPTS = 40;
const MAX_ANSWER = 262_144;

/**
 * Makes the enrollment secret of one workload and publishes its hash for the certificate authority: bound to that name and machine, 120 s
 * (H-03).
 */
export async function enrollmentOf(kv: KeyValue, workload: string, ip: string): Promise<string> {
  const secret = randomBytes(32).toString('base64url');
  const record = { sha256: createHash('sha256').update(secret).digest('hex'), workload, ip, generated_at: new Date().toISOString() };
  await kv.call('SET', FLEET_KEYS.enrollment(ip, workload), JSON.stringify(record), 'EX', LIFETIME_S);
  return secret;
}

/** One for each workload of a service. */
export async function enrollmentsOf(kv: KeyValue, { id, workloads }: Manifest, ip: string): Promise<Record<string, string>> {
  const names = [id, ...Object.keys(workloads).map(name => `${id}-${name}`)];
  return Object.fromEntries(await Promise.all(names.map(async name => [name, await enrollmentOf(kv, name, ip)] as const)));
}

/** The machine's own record (SUP-064): whose secret it is, for which services, and no secret in it (H-03). */
export async function publishEnrollment(
  kv: KeyValue,
  { ip, services, secret, lifetimeS = LIFETIME_S }: { ip: string; services: readonly string[]; secret: Uint8Array; lifetimeS?: number },
): Promise<void> {
  const record = {
    sha256: createHash('sha256').update(Buffer.from(secret).toString('base64url')).digest('hex'),
    services,
    ip,
    generated_at: new Date().toISOString(),
  };
  await kv.call('SET', FLEET_KEYS.enrollment(ip), JSON.stringify(record), 'EX', lifetimeS);
}

/**
 * Asks the certificate authority for one certificate: the first client certificate with the enrollment secret over server-authenticated
 * TLS, everything else with that one (CA-043). Waits for the authority to come up, bounded.
 */
export async function enroll({
  bootstrap,
  directory,
  request,
}: {
  bootstrap: Bootstrap;
  directory: Directory;
  request: Parameters<Mint>[0];
}): Promise<string> {
  const { kind, workload, hostnames, csr } = request;
  const own = ownCredential(bootstrap.dataDir, workload);
  const secret = bootstrap.enrollment[workload];
  const [path, body] =
    kind === 'listener'
      ? [ASKED_ROUTES.acme.fetchCertificate.path, { domain: hostnames[0], domains: hostnames, csr }]
      : [ASKED_ROUTES.acme.issueClientCertificate.path, { service_name: workload, csr }];
  let last: unknown;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const address = await directory.pick('acme').catch(() => undefined);
    if (address) {
      try {
        const { status, text } = await post(bootstrap, address, path as string, body as object, {
          ...(own ?? {}),
          ...(secret && kind === 'client' ? { secret } : {}),
        });
        const answer = JSON.parse(text || '{}') as { pem?: string; chain_pem?: string; code?: string; detail?: string };
        if (status === 200 || status === 201) return (answer.chain_pem ?? answer.pem) as string;
        last = new Error(`the certificate authority refused ${workload}: ${status} ${answer.code ?? ''} ${answer.detail ?? ''}`);
        if (status < 500 && status !== 429) throw last;
      } catch (error) {
        if (error === last) throw error;
        last = error;
      }
    }
    await delay(250);
  }
  throw new Error(`no certificate for ${workload} (${kind})`, { cause: last });
}

function ownCredential(dataDir: string, workload: string): { cert: string; key: string } | undefined {
  const [cert, key] = [`${dataDir}/keys/${workload}/client.crt`, `${dataDir}/keys/${workload}/client.key`];
  return existsSync(cert) && existsSync(key) ? { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') } : undefined;
}

function post(
  { anchors, domain, ip: own }: Bootstrap,
  { ip, port }: { ip: string; port: number },
  path: string,
  body: object,
  credential: { cert?: string; key?: string; secret?: string },
): Promise<{ status: number; text: string }> {
  const host = platformHost('acme', domain);
  const { secret, ...tls } = credential;
  return new Promise((resolve, reject) => {
    const sent = JSON.stringify(body);
    const outgoing = httpsRequest(
      {
        host: ip,
        port,
        path,
        method: 'POST',
        servername: host,
        ca: anchors.pq.root,
        minVersion: 'TLSv1.3',
        ecdhCurve: 'X25519MLKEM768',
        timeout: 10_000,
        agent: false,
        // An enrollment is bound to the machine's address (H-03): that is where it must be seen to come from.
        ...(own ? { localAddress: own } : {}),
        ...tls,
        headers: {
          host,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(sent),
          'x-platform-correlation-id': `enroll-${newId()}`,
          ...(secret ? { [ENROLLMENT_HEADER]: secret } : {}),
        },
      },
      response => {
        const chunks: Buffer[] = [];
        let size = 0;
        response.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > MAX_ANSWER) response.destroy(new Error('the answer is too large'));
          else chunks.push(chunk);
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }));
        response.on('error', reject);
      },
    );
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')));
    outgoing.on('error', reject);
    outgoing.end(sent);
  });
}
