import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { definePlugin, reply } from '@platform/sdk';
import { certificateAuthority } from '../contract/index.ts';
import { CertificateStore } from './certificate-store.ts';
import { Certificates } from './certificates.ts';
import { Enrollment } from './enrollment.ts';
import { Mint } from './mint.ts';

export default definePlugin(certificateAuthority, {
  setup(ctx) {
    const store = new CertificateStore(ctx.platform.dataDir);
    const certificates = new Certificates(ctx, store);
    const mint = new Mint(ctx, store, new Enrollment(ctx.kv, ctx.log));
    const { pq, classical } = ctx.authority.anchors;
    const pem = (part: 'root' | 'intermediate', alg: 'pq' | 'classical' | undefined) => {
      const text = alg === 'pq' ? pq[part] : alg === 'classical' ? classical[part] : pq[part] + classical[part];
      const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
      return reply(text, { headers: { 'content-type': 'application/x-pem-file', etag, 'cache-control': 'public, max-age=3600' } });
    };
    return {
      routes: {
        rootCertificate: async ({ query }) => pem('root', query.alg) as never,
        intermediateCertificate: async ({ query }) => pem('intermediate', query.alg) as never,
        issueClientCertificate: request => mint.clientCertificate(request),
        fetchCertificate: request => mint.listenerCertificate(request),
        listCertificates: request => certificates.list(request),
        revokeCertificate: request => certificates.revoke(request),
      },
      jobs: { publishRevocations: () => certificates.publishRevocations() },
      ready: async () => {
        await store.load();
        await certificates.adopt(join(ctx.platform.dataDir, 'keys'));
        await certificates.publishRevocations();
      },
    };
  },
});
