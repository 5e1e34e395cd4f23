import { registry } from '@platform/registry/contract';
import { definePlugin } from '@platform/sdk';
import { identity } from '../contract/index.ts';
import { AccessModel } from './access-model.ts';
import { AccessTemplates } from './access-templates.ts';
import { Attempts } from './attempts.ts';
import { ClientDirectory } from './client-directory.ts';
import { EffectiveAccess } from './effective-access.ts';
import { HostedPages } from './hosted-pages.ts';
import { PageGuard } from './page-guard.ts';
import { Passwords } from './passwords.ts';
import { People } from './people.ts';
import { Protocol } from './protocol.ts';
import { Realms } from './realms.ts';
import { sealedBoxOf } from './key-encryption.ts';
import { seed } from './seeds.ts';
import { Sessions } from './sessions.ts';
import { SignIn } from './sign-in.ts';
import { SigningKeys } from './signing-keys.ts';
import { TokenExchange } from './token-exchange.ts';
import { TokenVerifier } from './token-verifier.ts';
import { Workloads } from './workloads.ts';

export default definePlugin(identity, {
  uses: { registry },
  migrations: new URL('../migrations/', import.meta.url),

  async setup(ctx) {
    const box = await sealedBoxOf(ctx);
    const keys = new SigningKeys(ctx, box);
    await keys.load();
    const realms = new Realms(ctx);
    const model = new AccessModel(ctx);
    const templates = new AccessTemplates(ctx, model);
    const access = new EffectiveAccess(ctx);
    const workloads = new Workloads(ctx);
    const people = new People(ctx, access);
    const passwords = new Passwords();
    const sessions = new Sessions(ctx);
    const exchange = new TokenExchange(ctx, { access, keys, tokens: new TokenVerifier(ctx, keys) });
    const protocol = new Protocol(ctx, { box, keys, clients: new ClientDirectory(ctx, workloads), workloads, people, access, exchange, realms });
    const signIn = new SignIn(ctx, { attempts: new Attempts(ctx), guard: new PageGuard(ctx, realms, box), passwords, people, protocol, realms, sessions });
    const pages = new HostedPages(ctx, realms);
    return {
      routes: {
        putRole: request => model.putRole(request),
        nestRole: request => model.nestRole(request),
        putGroup: request => model.putGroup(request),
        putGroupRole: request => model.putGroupRole(request),
        putGroupMember: request => model.putGroupMember(request),
        deleteGroupMember: request => model.deleteGroupMember(request),
        putUserRole: request => model.putUserRole(request),
        deleteUserRole: request => model.deleteUserRole(request),
        userGroups: request => access.groups(request),
        groupMembers: request => access.members(request),
        userScopes: request => access.scopes(request),
        provisionAccess: request => templates.provision(request),
        putRealm: request => realms.put(request),
        putGrants: request => workloads.putGrants(request),
        getWorkload: request => workloads.get(request),
        putWorkload: request => workloads.put(request),
        listUsers: request => people.list(request),
        getUser: request => people.get(request),
        listSessions: request => sessions.list(request),
        revokeSession: request => sessions.revoke(request),
        branding: request => pages.branding(request),
        signIn: request => signIn.signIn(request),
        changePassword: request => signIn.changePassword(request),
        signOut: request => signIn.signOut(request),
        protocol: exchanged => protocol.handle(exchanged),
        protocolOverMtls: exchanged => protocol.handle(exchanged),
        discovery: exchanged => protocol.handle(exchanged),
        pages: exchanged => pages.serve(exchanged),
      },
      jobs: {
        forgetExpired: async () => {
          await ctx.db.sql`delete from oidc_state where expires_at < now() - interval '1 hour'`;
          await ctx.db.sql`delete from step_tokens where expires_at < now() - interval '1 day'`;
          await ctx.db.sql`delete from revocations where expires_at < now()`;
          await sessions.publish();
        },
      },
      ready: async () => {
        await realms.seed();
        await seed(ctx, model, passwords);
        await sessions.publish();
      },
    };
  },
});
