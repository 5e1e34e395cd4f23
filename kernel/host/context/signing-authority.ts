import type { SigningAuthority } from '@platform/sdk';
import { BadCsr, readCsr } from '../../identity/certificates/authority.ts';
import { anchorsOf, type Authority } from '../../identity/certificates/trust-anchors.ts';

/** The authority's files as the certificate authority service may use them: two questions, no key. */
export function signingAuthority(authority: Authority): SigningAuthority {
  return {
    anchors: anchorsOf(authority),
    readCsr: async csr => {
      try {
        return await readCsr(csr);
      } catch (error) {
        if (error instanceof BadCsr) return { refused: error.message };
        throw error;
      }
    },
    issue: ({ hierarchy, ...order }) => authority[hierarchy].issue(order),
  };
}
