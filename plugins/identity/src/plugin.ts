import './protocol/known-runtime.ts';
import { notification } from '@platform/notification/contract';
import { registry } from '@platform/registry/contract';
import { definePlugin, type NodeExchange } from '@platform/sdk';
import { identity } from '../contract/index.ts';
import { accountHandlers } from './account/account-handlers.ts';
import { accessHandlers } from './access/access-handlers.ts';
import { bumpEveryRealm } from './access/access-version.ts';
import { challenging } from './sign-in/challenges.ts';
import { approvalHandlers } from './approvals/approval-handlers.ts';
import { clientHandlers } from './clients/client-handlers.ts';
import { directoryHandlers } from './directory/directory-handlers.ts';
import { forgetExpired } from './expiry.ts';
import { sealedForLong } from './keys/sealed-for-long.ts';
import { passkeyHandlers } from './passkeys/passkey-handlers.ts';
import { realmHandlers } from './realm-handlers.ts';
import { recoveryHandlers } from './recovery/recovery-handlers.ts';
import { seed } from './seeds.ts';
import { servicesOf } from './services.ts';
import { walletHandlers } from './wallet/wallet-handlers.ts';
import { ssoHandlers } from './sso/sso-handlers.ts';

export default definePlugin(identity, {
  uses: { notification, registry },
  migrations: new URL('../migrations/', import.meta.url),

  async setup(context) {
    const ctx = challenging(context);
    const made = await servicesOf(ctx);
    const { pages, people, protocol, realms, rotation, sessions, signIn, workloads } = made;
    const exchanged = (exchange: NodeExchange) => protocol.handle(exchange, made.registrationEndpoint);
    return {
      routes: {
        ...accessHandlers(made),
        ...realmHandlers(made),
        putGrants: request => workloads.putGrants(request),
        getWorkload: request => workloads.get(request),
        putWorkload: request => workloads.put(request),
        listUsers: request => people.list(request),
        getUser: request => people.get(request),
        listSessions: request => sessions.list(request),
        revokeSession: request => sessions.revoke(request),
        ...accountHandlers(made.accounts),
        ...clientHandlers(made),
        ...directoryHandlers(made.directory),
        ...walletHandlers(made.wallets),
        ...passkeyHandlers(made.passkeys),
        ...ssoHandlers(made.sso),
        ...recoveryHandlers(made.recoveryParts),
        branding: request => pages.branding(request),
        signIn: request => signIn.signIn(request),
        changePassword: request => signIn.changePassword(request),
        signOut: request => signIn.signOut(request),
        continueAuthorization: request => made.authorizations.decide(request),
        ...approvalHandlers(made),
        listKeys: request => rotation.list(request),
        rotateKeys: request => rotation.rotate(request),
        protocol: exchanged,
        protocolOverMtls: exchanged,
        discovery: exchanged,
        pages: exchange => pages.serve(exchange),
      },
      tasks: { answer: (asked, run) => made.requests.answer(asked, run), mail: (letter, run) => made.mailbox.send(letter, run) },
      jobs: {
        forgetExpired: () => forgetExpired(ctx),
        advanceRecoveries: signal => made.recoveryParts.recovery.advance(signal),
        refreshKeys: () => made.keys.refresh(),
        sealAnew: signal => ctx.reseal('signing', sealedForLong, signal),
        rotateKeys: () => rotation.rotateWhenDue(),
        publishRevocations: () => sessions.publish(),
      },
      ready: async () => {
        await realms.seed();
        await seed(ctx, made.model, made.passwords);
        await sessions.publish();
        await bumpEveryRealm(ctx);
        ctx.catalog.follow(services => workloads.forget(services));
      },
    };
  },
});
