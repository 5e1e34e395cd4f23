import { AccessModel } from './access-model.ts';
import { AccessTemplates } from './access-templates.ts';
import { Attempts } from './attempts.ts';
import { AuthorizationSteps } from './authorization-steps.ts';
import { BrowserSession } from './browser-session.ts';
import { ClientDirectory } from './client-directory.ts';
import type { Ctx } from './context.ts';
import { EffectiveAccess } from './effective-access.ts';
import { HostedPages } from './hosted-pages.ts';
import { PageGuard } from './page-guard.ts';
import { Passwords } from './passwords.ts';
import { People } from './people.ts';
import { Protocol } from './protocol.ts';
import { Realms } from './realms.ts';
import { ScopeHolders } from './scope-holders.ts';
import { Sessions } from './sessions.ts';
import { SignIn } from './sign-in.ts';
import { SigningKeys } from './signing-keys.ts';
import { TokenExchange } from './token-exchange.ts';
import { TokenVerifier } from './token-verifier.ts';
import { Workloads } from './workloads.ts';

/** Everything of this service, put together by hand (house 20). */
export async function servicesOf(ctx: Ctx) {
  const box = await ctx.secrets.box(ctx.config.keyEncryptionRef);
  const keys = new SigningKeys(ctx, box);
  await keys.load();
  const realms = new Realms(ctx);
  const model = new AccessModel(ctx);
  const templates = new AccessTemplates(ctx, realms);
  const access = new EffectiveAccess(ctx);
  const holders = new ScopeHolders(ctx);
  const workloads = new Workloads(ctx);
  const people = new People(ctx, access);
  const passwords = new Passwords();
  const sessions = new Sessions(ctx);
  const attempts = new Attempts(ctx);
  const tokens = new TokenVerifier(ctx, keys);
  const exchange = new TokenExchange(ctx, { access, keys, realms, tokens });
  const protocol = new Protocol(ctx, { access, attempts, box, clients: new ClientDirectory(ctx, workloads), exchange, keys, people, realms, sessions, tokens, workloads });
  const browser = new BrowserSession(ctx, { protocol, box });
  const guard = new PageGuard(ctx, { realms, browser });
  const steps = new AuthorizationSteps(ctx, { browser, guard, protocol, realms });
  const signIn = new SignIn(ctx, { attempts, box, browser, guard, passwords, people, realms, sessions, steps });
  const pages = new HostedPages(ctx, realms);
  return { access, holders, keys, model, pages, passwords, people, protocol, realms, sessions, signIn, steps, templates, workloads };
}
