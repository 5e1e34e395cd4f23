export type Step =
  | 'sign-in'
  | 'sign-up'
  | 'mfa'
  | 'password-reset'
  | 'password-reset/confirm'
  | 'password-change'
  | 'verify-email'
  | 'consent'
  | 'device'
  | 'ciba'
  | 'wallet'
  | 'error'
  | 'account-recovery'
  | 'account-recovery/confirm'
  | 'account-recovery/cancel'
  | 'account-recovery/finish'
  | 'sso'
  | 'account'
  | 'account/mfa'
  | 'not-found'
  | 'passkey-enroll'
  | 'passkey-verify';

/** Steps that have a browser path; the passkey pages exist and are not routed. */
export const ROUTED: readonly Step[] = [
  'sign-in',
  'sign-up',
  'mfa',
  'password-reset',
  'password-reset/confirm',
  'password-change',
  'verify-email',
  'consent',
  'device',
  'ciba',
  'wallet',
  'error',
  'account-recovery',
  'account-recovery/confirm',
  'account-recovery/cancel',
  'account-recovery/finish',
  'sso',
  'account',
  'account/mfa',
];

export function stepOf(pathname: string): Step {
  return ROUTED.find(step => pathname === `/${step}`) ?? 'not-found';
}
