import { X509Certificate } from 'node:crypto';
import { BoundedMap, type NodeExchange } from '@platform/sdk';
import type { KoaContextWithOIDC } from 'oidc-provider';

type PeerOf = (context: KoaContextWithOIDC) => NodeExchange['peer'];

const MAX_CERTIFICATES = 1_000;
const certificates = new BoundedMap<string, X509Certificate>(MAX_CERTIFICATES);

/** Parsing a post-quantum certificate costs more than signing a token; a connection shows the same one every time. */
function certificateOf({ thumbprint, pem }: NonNullable<NodeExchange['peer']>): X509Certificate {
  let known = certificates.get(thumbprint);
  if (!known) {
    known = new X509Certificate(pem);
    certificates.set(thumbprint, known);
  }
  return known;
}

/** Clients that prove themselves with the certificate of their connection (RFC 8705). */
export const certificateFeature = (peerOf: PeerOf) => ({
  enabled: true,
  certificateBoundAccessTokens: true,
  tlsClientAuth: true,
  getCertificate: (context: KoaContextWithOIDC) => {
    const peer = peerOf(context);
    return peer && certificateOf(peer);
  },
  certificateAuthorized: (context: KoaContextWithOIDC) => peerOf(context) !== undefined,
  certificateSubjectMatches: (context: KoaContextWithOIDC, property: string, expected: string) => {
    const peer = peerOf(context);
    return peer !== undefined && property === 'tls_client_auth_subject_dn' && expected === `CN=m2m-${peer.workload}`;
  },
});
