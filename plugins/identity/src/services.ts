import { AccountAdministration } from './account/account-administration.ts';
import { AccountMailbox } from './account/account-mail.ts';
import { AccountRemoval } from './account/account-removal.ts';
import { AccountRequests } from './account/account-requests.ts';
import { AccountVisit } from './account/account-visit.ts';
import { Arrival } from './account/arrival.ts';
import { Invited } from './account/invited.ts';
import { EmailVerification } from './account/email-verification.ts';
import { OwnAccount } from './account/own-account.ts';
import { PasswordChange } from './account/password/password-change.ts';
import { PasswordDesk } from './account/password/password-desk.ts';
import { PasswordRenewal } from './account/password/password-renewal.ts';
import { PasswordReset } from './account/password/password-reset.ts';
import { SignInMeans } from './account/sign-in-means.ts';
import { SignUp } from './account/sign-up.ts';
import { SignUpPolicy } from './account/sign-up-policy.ts';
import { StepTokens } from './account/step-tokens.ts';
import { AccessModel } from './access/access-model.ts';
import { AccessTemplates } from './access/access-templates.ts';
import { AccountSelection } from './approvals/account-selection.ts';
import { AccountSource } from './approvals/account-source.ts';
import { CibaApproval } from './approvals/ciba-approval.ts';
import { CibaNotice } from './approvals/ciba-notice.ts';
import { Consents } from './approvals/consents.ts';
import { DeviceApproval } from './approvals/device-approval.ts';
import { OwnConsents } from './approvals/own-consents.ts';
import { PollPace } from './approvals/poll-pace.ts';
import { Attempts } from './sign-in/attempts.ts';
import { AuthorizationSteps } from './protocol/authorization-steps.ts';
import { BrowserSession } from './sign-in/browser-session.ts';
import { ClientDirectory } from './clients/client-directory.ts';
import { Applications } from './clients/applications.ts';
import { ClientRegistration } from './clients/client-registration.ts';
import { RegisteredClients } from './clients/registered-clients.ts';
import { RegistrationEndpoint } from './clients/registration-endpoint.ts';
import { RegisteredHomes } from './clients/vertical-homes.ts';
import type { Ctx } from './context.ts';
import { OwnAudit } from './directory/own-audit.ts';
import { EffectiveAccess } from './access/effective-access.ts';
import { HostedPages } from './sign-in/hosted-pages.ts';
import { KeyRotation } from './keys/key-rotation.ts';
import { LastAdministrator } from './access/last-administrator.ts';
import { MfaChallenge } from './mfa/mfa-challenge.ts';
import { MfaEnrolment } from './mfa/mfa-enrolment.ts';
import { SecondFactor } from './mfa/second-factor.ts';
import { PageGuard } from './sign-in/page-guard.ts';
import { OwnPasskeys } from './passkeys/own-passkeys.ts';
import { PasskeyChallenges } from './passkeys/passkey-challenges.ts';
import { PasskeySignIn } from './passkeys/passkey-sign-in.ts';
import { Passwords } from './people/passwords.ts';
import { People } from './people/people.ts';
import { Protocol } from './protocol/protocol.ts';
import { Realms } from './realms.ts';
import { ScopeHolders } from './access/scope-holders.ts';
import { Sessions } from './sign-in/sessions.ts';
import { AccountRecovery } from './recovery/account-recovery.ts';
import { Recoveries } from './recovery/recoveries.ts';
import { RecoveryDecisions } from './recovery/recovery-decisions.ts';
import { ScimService } from './scim/scim-service.ts';
import { ScimUsers } from './scim/scim-users.ts';
import { SignInSettings } from './sign-in/sign-in-settings.ts';
import { SignIn } from './sign-in/sign-in.ts';
import { SigningKeys } from './keys/signing-keys.ts';
import { SsoSignIn } from './sso/sso-sign-in.ts';
import { UpstreamProtocol } from './sso/upstream-protocol.ts';
import { UpstreamProviders } from './sso/upstream-providers.ts';
import { TokenExchange } from './protocol/token-exchange.ts';
import { TokenVerifier } from './protocol/token-verifier.ts';
import { OwnWallets } from './wallet/own-wallets.ts';
import { WalletChallenges } from './wallet/wallet-challenges.ts';
import { WalletSignIn } from './wallet/wallet-sign-in.ts';
import { Workloads } from './access/workloads.ts';

/** Everything of this service, put together by hand (house 20). */
export async function servicesOf(ctx: Ctx) {
  const box = ctx.keys.signing;
  const keys = new SigningKeys(ctx, box);
  await keys.start();
  const realms = new Realms(ctx);
  const model = new AccessModel(ctx);
  const templates = new AccessTemplates(ctx, realms);
  const access = new EffectiveAccess(ctx);
  const holders = new ScopeHolders(ctx);
  const workloads = new Workloads(ctx);
  const attempts = new Attempts(ctx, box);
  const people = new People(ctx, { access, attempts });
  const invited = new Invited(ctx, people);
  const passwords = new Passwords();
  const sessions = new Sessions(ctx);
  const tokens = new TokenVerifier(ctx, keys);
  const exchange = new TokenExchange(ctx, { access, keys, realms, tokens });
  const registered = new RegisteredClients(ctx);
  const clients = new ClientDirectory(ctx, { workloads, registered });
  const consents = new Consents(ctx, { clients, realms });
  const mailbox = new AccountMailbox(ctx, { realms });
  const notice = new CibaNotice(ctx, { attempts, clients, mailbox, people });
  const protocol = new Protocol(ctx, {
    access,
    attempts,
    box,
    clients,
    consents,
    exchange,
    invited,
    keys,
    notice,
    pace: new PollPace(ctx),
    people,
    realms,
    sessions,
    tokens,
    workloads,
  });
  const homes = new RegisteredHomes(ctx);
  const registration = new ClientRegistration(ctx, {
    clients: registered,
    homes,
    realms,
    sessions,
    validate: (envId, metadata) => protocol.validate(envId, metadata),
  });
  const registrationEndpoint = new RegistrationEndpoint(ctx, {
    attempts,
    clients: registered,
    directory: clients,
    homes,
    registration,
    realms,
    tokens,
    workloads,
  });
  const browser = new BrowserSession(ctx, { protocol, box });
  const guard = new PageGuard(ctx, { realms, browser });
  const selection = new AccountSelection(ctx, { browser, clients, protocol, realms, source: new AccountSource(ctx, keys) });
  const authorizations = new AuthorizationSteps(ctx, { browser, consents, guard, protocol, realms, selection });
  const device = new DeviceApproval(ctx, { attempts, browser, clients, consents, guard, protocol, realms });
  const ciba = new CibaApproval(ctx, { browser, clients, consents, guard, people, protocol, realms });
  const rotation = new KeyRotation(ctx, keys);
  const policy = new SignUpPolicy(ctx);
  const upstream = new UpstreamProtocol(ctx);
  const providers = new UpstreamProviders(ctx, { box, protocol: upstream, realms });
  const pages = new HostedPages(ctx, { invited, providers, realms, signUp: policy });
  const steps = new StepTokens(ctx);
  const factor = new SecondFactor(ctx, box);
  const desk = new PasswordDesk(ctx, passwords);
  const change = new PasswordChange(ctx, { mailbox, sessions, steps });
  const recoveries = new Recoveries(ctx, { box, mailbox });
  const arrival = new Arrival(ctx, { attempts, authorizations, browser, mailbox, recoveries, steps });
  const visits = new AccountVisit(ctx, { attempts, browser, guard, passwords: desk, people, realms });
  const ownConsents = new OwnConsents(ctx, { clients: registered, sessions, visits });
  const pageParts = { attempts, guard, invited, mailbox, passwords: desk, people, realms, steps };
  const renewal = ctx.own(new PasswordRenewal(ctx, passwords));
  const signIn = new SignIn(ctx, { ...pageParts, arrival, authorizations, browser, change, renewal, sessions });
  const signUp = new SignUp(ctx, { ...pageParts, policy });
  const verification = new EmailVerification(ctx, pageParts);
  const reset = new PasswordReset(ctx, { ...pageParts, change });
  const recovery = new AccountRecovery(ctx, { ...pageParts, change, factor, recoveries });
  const answers = {
    sign_up: signUp.open,
    email_verification: verification.send,
    password_reset: reset.send,
    account_recovery: recovery.begin,
  };
  const requests = new AccountRequests(ctx, { box, realms, answers });
  const challenge = new MfaChallenge(ctx, { ...pageParts, arrival, factor });
  const enrolment = new MfaEnrolment(ctx, { attempts, factor, mailbox, visits });
  const means = new SignInMeans(ctx);
  const challenges = new PasskeyChallenges(ctx);
  const passkeys = {
    own: new OwnPasskeys(ctx, { challenges, mailbox, means, realms, visits }),
    signIn: new PasskeySignIn(ctx, { ...pageParts, arrival, challenges }),
  };
  const sso = { providers, signIn: new SsoSignIn(ctx, { ...pageParts, arrival, box, protocol: upstream, providers }) };
  const account = new OwnAccount(ctx, { arrival, change, passwords: desk, recoveries, sessions, visits });
  const administrators = new LastAdministrator(ctx);
  const administration = new AccountAdministration(ctx, { ...pageParts, administrators, factor, recoveries, sessions });
  const removal = new AccountRemoval(ctx, { administrators, sessions });
  const scim = new ScimService(ctx, {
    realms,
    users: new ScimUsers(ctx, { administrators, change, mailbox, passwords: desk, recoveries, removal, sessions, steps }),
  });
  const directory = { audit: new OwnAudit(ctx), people, removal, scim };
  const walletChallenges = new WalletChallenges(ctx, { realms });
  const wallets = {
    own: new OwnWallets(ctx, { attempts, challenges: walletChallenges, mailbox, means, visits }),
    signIn: new WalletSignIn(ctx, { ...pageParts, arrival, challenges: walletChallenges }),
  };
  const accounts = { account, administration, challenge, enrolment, requests, reset, signUp, verification };
  const approvals = { ciba, consents, device, ownConsents, selection };
  const recoveryParts = { account, decisions: new RecoveryDecisions(ctx, { realms, recoveries }), recovery, requests };
  const applications = new Applications(ctx, { clients: registered, homes, realms, registration });
  const clientParts = { applications, registration, registrationEndpoint };
  return {
    ...approvals,
    ...clientParts,
    access,
    accounts,
    authorizations,
    directory,
    holders,
    keys,
    mailbox,
    model,
    pages,
    passkeys,
    passwords,
    people,
    protocol,
    realms,
    recoveryParts,
    requests,
    rotation,
    sessions,
    settings: new SignInSettings(ctx, { realms }),
    signIn,
    sso,
    templates,
    wallets,
    workloads,
  };
}
