import { constants, type X509Certificate } from 'node:crypto';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import type { Credential } from './authority.ts';
import { thumbprintOf } from './authority.ts';
import type { TrustAnchors } from './trust-anchors.ts';

/** `strict` allows X25519MLKEM768 only; `hybrid` adds the classical groups for peers outside (G-K-09). */
export type PqMode = 'strict' | 'hybrid';

const groups = (mode: PqMode) => (mode === 'strict' ? 'X25519MLKEM768' : 'X25519MLKEM768:X25519:P-256');

/** Client side of service-to-service connections: only the platform's post-quantum root is trusted (KRN-026). */
export const clientTls = (credential: Credential, anchors: TrustAnchors, mode: PqMode) => ({
  key: credential.key,
  cert: credential.chain,
  ca: anchors.pq.root,
  minVersion: 'TLSv1.3' as const,
  ecdhCurve: groups(mode),
});

/** Server side: a certificate is asked for and, if shown, must be ours; enrollment and health come without one. */
export const serverContext = (credential: Credential, anchors: TrustAnchors, mode: PqMode): SecureContextOptions => ({
  key: credential.key,
  cert: credential.chain,
  ca: anchors.pq.root,
  minVersion: 'TLSv1.3',
  ecdhCurve: groups(mode),
  // ML-DSA sessions are too large to resume in Node; a ticket would only cost 12 KB a handshake (facts/runtime 0.4).
  secureOptions: constants.SSL_OP_NO_TICKET,
});

/** The verified client certificate of a connection. */
export interface Peer {
  /** Workload name, from CN `m2m-{name}` and the matching SAN (G-K-09). */
  readonly workload: string;
  readonly thumbprint: string;
  readonly pem: string;
}

const peers = new WeakMap<TLSSocket, Peer | 'none'>();

/** Who is at the other end, parsed once per connection; `undefined` when no certificate was shown. */
export function peerOf(socket: TLSSocket): Peer | undefined {
  let known = peers.get(socket);
  if (known === undefined) {
    known = readPeer(socket) ?? 'none';
    peers.set(socket, known);
  }
  return known === 'none' ? undefined : known;
}

function readPeer(socket: TLSSocket): Peer | undefined {
  if (!socket.authorized) return undefined;
  const certificate = socket.getPeerX509Certificate?.();
  return certificate && peerFromCertificate(certificate);
}

/** The workload a certificate names: its CN and its URI must agree, so that neither alone can be borrowed. */
export function peerFromCertificate(certificate: X509Certificate): Peer | undefined {
  const workload = /(?:^|\n)CN=m2m-([a-z][a-z0-9-]{0,59})(?:\n|$)/.exec(certificate.subject)?.[1];
  if (!workload || !certificate.subjectAltName?.split(', ').includes(`URI:urn:platform:workload:${workload}`)) return undefined;
  return { workload, thumbprint: thumbprintOf(certificate), pem: certificate.toString() };
}
