import type { accountRoutes } from '../../contract/routes/account-routes.ts';
import type { Handlers } from '../context.ts';
import type { MfaChallenge } from '../mfa/mfa-challenge.ts';
import type { MfaEnrolment } from '../mfa/mfa-enrolment.ts';
import type { AccountAdministration } from './account-administration.ts';
import type { AccountRequests } from './account-requests.ts';
import type { EmailVerification } from './sign-up/email-verification.ts';
import type { OwnAccount } from './own-account.ts';
import type { PasswordReset } from './password/password-reset.ts';
import type { SignUp } from './sign-up/sign-up.ts';

interface Parts {
  readonly account: OwnAccount;
  readonly administration: AccountAdministration;
  readonly challenge: MfaChallenge;
  readonly enrolment: MfaEnrolment;
  readonly requests: AccountRequests;
  readonly reset: PasswordReset;
  readonly signUp: SignUp;
  readonly verification: EmailVerification;
}

/** Routes of accounts to who answers them. */
export const accountHandlers = ({
  account,
  administration,
  challenge,
  enrolment,
  requests,
  reset,
  signUp,
  verification,
}: Parts): Handlers<keyof typeof accountRoutes> => ({
  signUp: request => signUp.ask(requests, request),
  putSignUpRole: request => signUp.putRole(request),
  deleteSignUpRole: request => signUp.deleteRole(request),
  verifyEmail: request => verification.verify(request),
  requestVerification: request => verification.ask(requests, request),
  requestPasswordReset: request => reset.ask(requests, request),
  resetPassword: request => reset.reset(request),
  verifyMfa: request => challenge.verify(request),
  account: request => account.get(request),
  ownSessions: request => account.sessions(request),
  endOwnSession: request => account.endSession(request),
  endOtherSessions: request => account.endOthers(request),
  changeOwnPassword: request => account.changePassword(request),
  beginMfa: request => enrolment.begin(request),
  confirmMfa: request => enrolment.confirm(request),
  removeMfa: request => enrolment.remove(request),
  renewRecoveryCodes: request => enrolment.renewCodes(request),
  disableUser: request => administration.disable(request),
  enableUser: request => administration.enable(request),
  unlockUser: request => administration.unlock(request),
  resetUserMfa: request => administration.resetMfa(request),
});
