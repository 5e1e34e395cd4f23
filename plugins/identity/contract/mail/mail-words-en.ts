const NOT_YOU = 'If it was not you, reset your password:\n{reset}\nand tell an administrator.';

/**
 * What each mail says. `{link}` is what its reader came for; every link stands on a line of its own, so that no sign of a sentence sticks
 * to it.
 */
export const en = {
  confirm_address: {
    subject: 'Confirm your e-mail address',
    text: 'Confirm that this e-mail address is yours:\n{link}\n\nThe link works once, for 24 hours. If you did not open an account, do nothing.',
  },
  already_there: {
    subject: 'You already have an account',
    text: 'Somebody, probably you, asked to open an account with this e-mail address. You already have one.\n\nSign in:\n{link}\n\nIf you forgot the password:\n{reset}\n\nIf it was not you, do nothing.',
  },
  asked_twice: {
    subject: 'Choose a password for your account',
    text: 'Somebody asked more than once to open an account with this e-mail address, and it may not have been you each time. No password that was given then is valid. If you want the account, choose yours:\n{link}\n\nThe link works once, for 30 minutes. Afterwards, ask for another one:\n{reset}\n\nIf it was not you, do nothing.',
  },
  reset_password: {
    subject: 'Reset your password',
    text: 'Choose a new password:\n{link}\n\nThe link works once, for 30 minutes. If you did not ask for it, do nothing: your password stays as it is.',
  },
  welcome: {
    subject: 'Choose a password for your account',
    text: 'An account was opened for you. Choose a password to sign in with:\n{link}\n\nThe link works once, for 30 minutes. Afterwards, ask for another one:\n{reset}',
  },
  ciba: {
    subject: 'Somebody asks to act for you',
    text: '{name} asks to act for you. See what it is about, and decide:\n{link}\n\nThe request ends after a few minutes by itself. If you do not expect it, deny it or do nothing.',
  },
  recovery_confirm: {
    subject: 'Recover your account',
    text: 'Somebody, probably you, asked to recover your account. Confirm that it was you:\n{link}\n\nThe link works once, for 30 minutes. If it was not you, do nothing, or end it at once:\n{cancel}',
  },
  recovery_under_way: {
    subject: 'Your account is being recovered already',
    text: 'Somebody, probably you, asked to recover your account. That is under way already. You get a mail when you can go on.\n\nIf you do not want it, end it:\n{cancel}',
  },
  recovery_waiting: {
    subject: 'Your account is being recovered',
    text: 'The recovery of your account was confirmed. From {time} on you can choose a new password; you get a mail with the link then. Your authenticator app, recovery codes and passkeys are taken away with it.\n\nIf it was not you, end it now. Signing in as usual ends it too:\n{cancel}',
  },
  recovery_judged: {
    subject: 'Your account is being recovered',
    text: 'The recovery of your account was confirmed. An administrator decides on it. Once it is approved, you get a mail with the link to choose a new password. Your authenticator app, recovery codes and passkeys are taken away with it.\n\nIf it was not you, end it now. Signing in as usual ends it too:\n{cancel}',
  },
  recovery_wait_judged: {
    subject: 'Your account is being recovered',
    text: 'The recovery of your account was confirmed. An administrator decides on it. Once it is approved, and not before {time}, you get a mail with the link to choose a new password. Your authenticator app, recovery codes and passkeys are taken away with it.\n\nIf it was not you, end it now. Signing in as usual ends it too:\n{cancel}',
  },
  recovery_approved: {
    subject: 'The recovery of your account was approved',
    text: 'An administrator approved the recovery of your account. From {time} on you can choose a new password; you get a mail with the link then.\n\nIf it was not you, end it now:\n{cancel}',
  },
  recovery_offered: {
    subject: 'Choose a new password for your account',
    text: 'You can finish the recovery of your account. Choose a new password:\n{link}\n\nThe link works once, until {time}. Your authenticator app, recovery codes and passkeys are taken away, and every device is signed out.\n\nIf it was not you, end it now:\n{cancel}',
  },
  recovery_refused: {
    subject: 'The recovery of your account was refused',
    text: 'An administrator refused the recovery of your account. Nothing was changed. If it was you, talk to an administrator.',
  },
  recovery_cancelled: {
    subject: 'The recovery of your account was ended',
    text: 'The recovery of your account was ended before it was finished. Nothing was changed. If you still need it, ask for it again:\n{link}',
  },
  recovery_expired: {
    subject: 'The recovery of your account has expired',
    text: 'The recovery of your account was not finished in time. Nothing was changed. If you still need it, ask for it again:\n{link}',
  },
  recovery_completed: {
    subject: 'Your account was recovered',
    text: `Your account has a new password. The authenticator app, the recovery codes and the passkeys were taken away, and every device was signed out. Sign in and set up a second factor again.\n\n${NOT_YOU}`,
  },
  password_changed: {
    subject: 'Your password was changed',
    text: `The password of your account was changed, and every other device was signed out.\n\n${NOT_YOU}`,
  },
  new_sign_in: {
    subject: 'A sign-in from a new device',
    text: `Your account was signed in to from a device that it had not been used with in the last 90 days.\n\nDevice: {device}\nTime: {time}\n\nIf it was you, do nothing. You see every device of your account, and can sign each one out, here:\n{link}\n\n${NOT_YOU}`,
  },
  mfa_enrolled: {
    subject: 'An authenticator app was added',
    text: `Signing in to your account now asks for a code of your authenticator app.\n\n${NOT_YOU}`,
  },
  mfa_removed: {
    subject: 'The authenticator app was removed',
    text: `Signing in to your account no longer asks for a code.\n\n${NOT_YOU}`,
  },
  recovery_code_used: {
    subject: 'A recovery code was used',
    text: `Somebody signed in to your account with a recovery code. It is void now.\n\n${NOT_YOU}`,
  },
  recovery_codes_renewed: {
    subject: 'New recovery codes were made',
    text: `Your account has new recovery codes. The old ones are void.\n\n${NOT_YOU}`,
  },
  wallet_linked: {
    subject: 'A wallet was linked to your account',
    text: `The holder of this wallet can sign in to your account now.\n\n${NOT_YOU}`,
  },
  wallet_unlinked: {
    subject: 'A wallet was removed from your account',
    text: `The wallet does not sign in to your account any more.\n\n${NOT_YOU}`,
  },
  passkey_added: {
    subject: 'A passkey was added',
    text: `Somebody can sign in to your account with a new passkey, without the password.\n\n${NOT_YOU}`,
  },
  passkey_removed: {
    subject: 'A passkey was removed',
    text: `One of the passkeys of your account is not accepted any more.\n\n${NOT_YOU}`,
  },
  passkey_suspended: {
    subject: 'A passkey was stopped',
    text: `A copy of one of your passkeys was used. It is not accepted any more: remove it, and add another one.\n\n${NOT_YOU}`,
  },
} as const;

export type Letter = keyof typeof en;
export type MailWords = Readonly<Record<Letter, { readonly subject: string; readonly text: string }>>;
