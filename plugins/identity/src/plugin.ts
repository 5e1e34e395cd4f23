import './protocol/known-runtime.ts';
import { notification } from '@platform/notification/contract';
import { registry } from '@platform/registry/contract';
import { definePlugin, type NodeExchange } from '@platform/sdk';
import { identity } from '../contract/index.ts';
import { accountHandlers } from './account/account-handlers.ts';
import { bumpEveryRealm } from './access/access-version.ts';
import { challenging } from './sign-in/challenges.ts';
import { applicationHandlers } from './clients/application-handlers.ts';
import { directoryHandlers } from './directory/directory-handlers.ts';
import { forgetExpired } from './expiry.ts';
import { sealedForLong } from './keys/sealed-for-long.ts';
import { passkeyHandlers } from './passkeys/passkey-handlers.ts';
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
    const {
      access,
      accounts,
      authorizations,
      ciba,
      consents,
      device,
      directory,
      holders,
      keys,
      mailbox,
      model,
      ownConsents,
      pages,
      passwords,
      people,
      protocol,
      realms,
    } = made;
    const { registration, requests, rotation, selection, sessions, signIn, templates, wallets, workloads } = made;
    const exchanged = (exchange: NodeExchange) => protocol.handle(exchange, made.registrationEndpoint);
    return {
      routes: {
        putRole: request => model.putRole(request),
        nestRole: request => model.nestRole(request),
        putGroup: request => model.putGroup(request),
        deleteRole: request => model.deleteRole(request),
        deleteGroup: request => model.deleteGroup(request),
        putGroupRole: request => model.putGroupRole(request),
        putGroupMember: request => model.putGroupMember(request),
        deleteGroupMember: request => model.deleteGroupMember(request),
        putUserRole: request => model.putUserRole(request),
        deleteUserRole: request => model.deleteUserRole(request),
        userGroups: request => access.groups(request),
        tenantsOf: request => access.tenants(request),
        groupMembers: request => access.members(request),
        membersOf: request => access.membersOf(request),
        leaveGroups: request => model.leaveGroups(request),
        userScopes: request => access.scopes(request),
        scopeHolders: request => holders.list(request),
        provisionAccess: request => templates.provision(request),
        describeAccess: request => templates.describe(request),
        removeAccess: request => templates.remove(request),
        issuerOn: async ({ params }) => ({ env_id: (await realms.onHost(params.host)).env_id }),
        putRealm: request => realms.put(request),
        signInSettings: request => made.settings.get(request),
        putSignInSettings: request => made.settings.put(request),
        putGrants: request => workloads.putGrants(request),
        getWorkload: request => workloads.get(request),
        putWorkload: request => workloads.put(request),
        listUsers: request => people.list(request),
        getUser: request => people.get(request),
        listSessions: request => sessions.list(request),
        revokeSession: request => sessions.revoke(request),
        ...accountHandlers(accounts),
        ...applicationHandlers(made.applications),
        ...directoryHandlers(directory),
        ...walletHandlers(wallets),
        ...passkeyHandlers(made.passkeys),
        ...ssoHandlers(made.sso),
        ...recoveryHandlers(made.recoveryParts),
        branding: request => pages.branding(request),
        signIn: request => signIn.signIn(request),
        changePassword: request => signIn.changePassword(request),
        signOut: request => signIn.signOut(request),
        continueAuthorization: request => authorizations.decide(request),
        consent: request => consents.describe(request),
        consentAccounts: request => selection.accounts(request),
        ownConsents: request => ownConsents.list(request),
        withdrawConsent: request => ownConsents.withdraw(request),
        device: request => device.show(request),
        decideDevice: request => device.decide(request),
        ciba: request => ciba.show(request),
        decideCiba: request => ciba.decide(request),
        registerClient: request => registration.register(request),
        deleteClient: request => registration.delete(request),
        deleteClientsOf: request => registration.deleteOf(request),
        listKeys: request => rotation.list(request),
        rotateKeys: request => rotation.rotate(request),
        protocol: exchanged,
        protocolOverMtls: exchanged,
        discovery: exchanged,
        pages: exchange => pages.serve(exchange),
      },
      tasks: { answer: (asked, run) => requests.answer(asked, run), mail: (letter, run) => mailbox.send(letter, run) },
      jobs: {
        forgetExpired: () => forgetExpired(ctx),
        advanceRecoveries: signal => made.recoveryParts.recovery.advance(signal),
        refreshKeys: () => keys.refresh(),
        sealAnew: signal => ctx.reseal('signing', sealedForLong, signal),
        rotateKeys: () => rotation.rotateWhenDue(),
        publishRevocations: () => sessions.publish(),
      },
      ready: async () => {
        await realms.seed();
        await seed(ctx, model, passwords);
        await sessions.publish();
        await bumpEveryRealm(ctx);
      },
    };
  },
});
