import { AccountVisit } from '../account/account-visit.ts';
import { Arrival } from '../account/arrival.ts';
import { PasswordChange } from '../account/password/password-change.ts';
import { PasswordDesk } from '../account/password/password-desk.ts';
import { SignInMeans } from '../account/sign-in-means.ts';
import { SignUpPolicy } from '../account/sign-up/sign-up-policy.ts';
import { StepTokens } from '../account/step-tokens.ts';
import { AccountSelection } from '../approvals/account-selection.ts';
import { AccountSource } from '../approvals/account-source.ts';
import { SecondFactor } from '../mfa/second-factor.ts';
import { AuthorizationSteps } from '../protocol/authorization-steps.ts';
import { Recoveries } from '../recovery/recoveries.ts';
import { BrowserSession } from '../sign-in/browser-session.ts';
import { HostedPages } from '../sign-in/hosted-pages.ts';
import { PageGuard } from '../sign-in/page-guard.ts';
import { UpstreamProtocol } from '../sso/upstream-protocol.ts';
import { UpstreamProviders } from '../sso/upstream-providers.ts';
import type { Ctx } from '../context.ts';
import type { ClientParts } from './client-parts.ts';
import type { GroundParts } from './ground-parts.ts';

/** What the hosted pages share: the browser's session, the steps of an authorization, passwords, second factors and recoveries. */
export function pageParts(ctx: Ctx, made: GroundParts & ClientParts) {
  const { attempts, box, clients, consents, invited, keys, mailbox, passwords, people, protocol, realms, sessions } = made;
  const browser = new BrowserSession(ctx, { protocol, box });
  const guard = new PageGuard(ctx, { realms, browser });
  const selection = new AccountSelection(ctx, { browser, clients, protocol, realms, source: new AccountSource(ctx, keys) });
  const authorizations = new AuthorizationSteps(ctx, { browser, consents, guard, protocol, realms, selection });
  const policy = new SignUpPolicy(ctx);
  const upstream = new UpstreamProtocol(ctx);
  const providers = new UpstreamProviders(ctx, { box, protocol: upstream, realms });
  const steps = new StepTokens(ctx);
  const desk = new PasswordDesk(ctx, passwords);
  const recoveries = new Recoveries(ctx, { box, mailbox });
  return {
    arrival: new Arrival(ctx, { attempts, authorizations, browser, mailbox, recoveries, steps }),
    authorizations,
    browser,
    change: new PasswordChange(ctx, { mailbox, sessions, steps }),
    factor: new SecondFactor(ctx, box),
    means: new SignInMeans(ctx),
    pages: new HostedPages(ctx, { invited, providers, realms, signUp: policy }),
    policy,
    providers,
    recoveries,
    selection,
    shared: { attempts, guard, invited, mailbox, passwords: desk, people, realms, steps },
    upstream,
    visits: new AccountVisit(ctx, { attempts, browser, guard, passwords: desk, people, realms }),
  };
}
export type PageParts = ReturnType<typeof pageParts>;
/** Everything that what a person does at the pages is made of. */
export type Made = GroundParts & ClientParts & PageParts;
