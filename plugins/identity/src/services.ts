import { AccessModel } from './access-model.ts';
import { AccessTemplates } from './access-templates.ts';
import { AccountSelection } from './approvals/account-selection.ts';
import { AccountSource } from './approvals/account-source.ts';
import { CibaApproval } from './approvals/ciba-approval.ts';
import { Consents } from './approvals/consents.ts';
import { DeviceApproval } from './approvals/device-approval.ts';
import { PollPace } from './approvals/poll-pace.ts';
import { Attempts } from './attempts.ts';
import { AuthorizationSteps } from './authorization-steps.ts';
import { BrowserSession } from './browser-session.ts';
import { ClientDirectory } from './client-directory.ts';
import { ClientRegistration } from './clients/client-registration.ts';
import { RegisteredClients } from './clients/registered-clients.ts';
import { RegistrationEndpoint } from './clients/registration-endpoint.ts';
import type { Ctx } from './context.ts';
import { EffectiveAccess } from './effective-access.ts';
import { HostedPages } from './hosted-pages.ts';
import { KeyRotation } from './key-rotation.ts';
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
  await keys.start();
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
  const registered = new RegisteredClients(ctx);
  const clients = new ClientDirectory(ctx, { workloads, registered });
  const consents = new Consents(ctx, { clients, realms });
  const protocol = new Protocol(ctx, { access, attempts, box, clients, consents, exchange, keys, pace: new PollPace(ctx), people, realms, sessions, tokens, workloads });
  const registration = new ClientRegistration(ctx, { clients: registered, realms, validate: (envId, metadata) => protocol.validate(envId, metadata) });
  const registrationEndpoint = new RegistrationEndpoint(ctx, { clients: registered, directory: clients, registration, realms, tokens, workloads });
  const browser = new BrowserSession(ctx, { protocol, box });
  const guard = new PageGuard(ctx, { realms, browser });
  const selection = new AccountSelection(ctx, { browser, clients, protocol, realms, source: new AccountSource(ctx, keys) });
  const steps = new AuthorizationSteps(ctx, { browser, consents, guard, protocol, realms, selection });
  const device = new DeviceApproval(ctx, { attempts, browser, clients, consents, guard, protocol, realms });
  const ciba = new CibaApproval(ctx, { browser, clients, consents, guard, people, protocol, realms });
  const rotation = new KeyRotation(ctx, keys);
  const signIn = new SignIn(ctx, { attempts, box, browser, guard, passwords, people, realms, sessions, steps });
  const pages = new HostedPages(ctx, realms);
  return {
    access,
    ciba,
    consents,
    device,
    holders,
    keys,
    model,
    pages,
    passwords,
    people,
    protocol,
    realms,
    registration,
    registrationEndpoint,
    rotation,
    selection,
    sessions,
    signIn,
    steps,
    templates,
    workloads,
  };
}
