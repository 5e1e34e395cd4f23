import { definePlugin } from '@platform/sdk';
import { certificateAuthority } from '../contract/index.ts';
import { openService } from './service.ts';

export default definePlugin(certificateAuthority, {
  async setup(ctx) {
    const { acme, anchors, mint, certificates, overview, activity, log, start, tick, forget } = await openService(ctx);
    const { door, accounts, orders, held } = acme;
    return {
      routes: {
        acmeDirectory: door.resource({ get: acme.directory }),
        acmeNonce: exchange => door.nonce(exchange),
        acmeNewAccount: door.signed(request => accounts.create(request)),
        acmeAccount: door.resource({ post: request => accounts.update(request) }),
        acmeAccountOrders: door.resource({ post: request => accounts.orders(request) }),
        acmeKeyChange: door.resource({ post: request => accounts.changeKey(request) }),
        acmeNewOrder: door.resource({ post: request => orders.create(request) }),
        acmeOrder: door.resource({ get: request => orders.look(request), post: request => orders.lookSigned(request) }),
        acmeFinalize: door.resource({ post: request => orders.finalize(request) }),
        acmeAuthorization: door.resource({
          get: request => orders.authorization(request),
          post: request => orders.authorizationSigned(request),
        }),
        acmeChallenge: door.resource({ get: request => orders.authorizationOf(request), post: request => orders.challenge(request) }),
        acmeCertificate: door.resource({ get: request => held.download(request), post: request => held.download(request) }),
        acmeRevoke: door.signed(request => held.revoke(request)),
        acmeRenewalInfo: door.resource({ get: request => held.renewalInfo(request) }),
        challengeAnswer: exchange => acme.challengeAnswer(exchange),
        rootCertificate: async ({ query }) => anchors('root', query.alg),
        intermediateCertificate: async ({ query }) => anchors('intermediate', query.alg),
        issueClientCertificate: request => mint.clientCertificate(request),
        fetchCertificate: request => mint.listenerCertificate(request),
        listCertificates: request => certificates.list(request),
        downloadCertificate: request => certificates.download(request),
        getCertificate: request => certificates.get(request),
        revokeCertificate: request => certificates.revoke(request),
        verifyLog: () => log.verify(),
        listAccounts: request => overview.accounts(request),
        listOrders: request => overview.orders(request),
        listHierarchies: async () => overview.hierarchies(),
        authorityFigures: async () => activity.figures(),
        authorityMinutes: async () => activity.minutes(),
        authoritySettings: async () => overview.settings(log.keys),
      },
      jobs: { publishRevocations: tick, forgetOrders: forget },
      metrics: () => activity.figures(),
      ready: start,
    };
  },
});
