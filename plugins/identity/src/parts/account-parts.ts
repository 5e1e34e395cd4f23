import { LastAdministrator } from '../access/last-administrator.ts';
import { AccountAdministration } from '../account/account-administration.ts';
import { AccountRemoval } from '../account/account-removal.ts';
import { AccountRequests } from '../account/account-requests.ts';
import { EmailVerification } from '../account/sign-up/email-verification.ts';
import { OwnAccount } from '../account/own-account.ts';
import { PasswordReset } from '../account/password/password-reset.ts';
import { SignUp } from '../account/sign-up/sign-up.ts';
import { OwnAudit } from '../directory/own-audit.ts';
import { MfaChallenge } from '../mfa/mfa-challenge.ts';
import { MfaEnrolment } from '../mfa/mfa-enrolment.ts';
import { AccountRecovery } from '../recovery/account-recovery.ts';
import { RecoveryDecisions } from '../recovery/recovery-decisions.ts';
import { ScimService } from '../scim/scim-service.ts';
import { ScimUsers } from '../scim/scim-users.ts';
import type { Ctx } from '../context.ts';
import type { Made } from './page-parts.ts';

/** Accounts: how one is made, kept, recovered and removed, by its person, an administrator or a directory. */
export function accountParts(ctx: Ctx, made: Made) {
  const { arrival, box, change, factor, mailbox, people, policy, realms, recoveries, sessions, shared, visits } = made;
  const { attempts, passwords, steps } = shared;
  const signUp = new SignUp(ctx, { ...shared, policy });
  const verification = new EmailVerification(ctx, shared);
  const reset = new PasswordReset(ctx, { ...shared, change });
  const recovery = new AccountRecovery(ctx, { ...shared, change, factor, recoveries });
  const answers = {
    sign_up: signUp.open,
    email_verification: verification.send,
    password_reset: reset.send,
    account_recovery: recovery.begin,
  };
  const requests = new AccountRequests(ctx, { box, realms, answers });
  const account = new OwnAccount(ctx, { arrival, change, passwords, recoveries, sessions, visits });
  const administrators = new LastAdministrator(ctx);
  const administration = new AccountAdministration(ctx, { ...shared, administrators, factor, recoveries, sessions });
  const removal = new AccountRemoval(ctx, { administrators, sessions });
  const users = new ScimUsers(ctx, { administrators, change, mailbox, passwords, recoveries, removal, sessions, steps });
  const challenge = new MfaChallenge(ctx, { ...shared, arrival, factor });
  const enrolment = new MfaEnrolment(ctx, { attempts, factor, mailbox, visits });
  return {
    accounts: { account, administration, challenge, enrolment, requests, reset, signUp, verification },
    directory: { audit: new OwnAudit(ctx), people, removal, scim: new ScimService(ctx, { realms, users }) },
    recoveryParts: { account, decisions: new RecoveryDecisions(ctx, { realms, recoveries }), recovery, requests },
    requests,
  };
}
