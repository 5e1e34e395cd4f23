import { ar } from './messages-ar.ts';
import { de } from './messages-de.ts';

const en = {
  language: 'Language',
  sign_in: 'Sign in',
  sign_in_to: 'to continue to {name}',
  email: 'Email',
  password: 'Password',
  new_password: 'New password',
  display_name: 'Your name',
  optional: 'optional',
  forgot: 'Forgot your password?',
  sso: 'Single sign-on',
  sso_with: 'Sign in with {name}',
  sso_note: 'Single sign-on is not set up here yet. Use your email and password.',
  no_account: 'No account yet?',
  create_account: 'Create an account',
  have_account: 'Already have an account?',
  invited: 'You are invited to join {name}.',
  invited_by: '{inviter} invites you to join {name}.',
  join: 'Join {name}',
  verify_join: 'One more step: confirm that this address is yours, and you are a member of {name}.',
  sign_up_text: 'You will be asked to confirm your email address.',
  show_password: 'Show password',
  hide_password: 'Hide password',
  caps_lock: 'Caps Lock is on.',
  meter_empty: '12 to 128 characters. A sentence works well.',
  meter_short: '{n} of at least 12 characters',
  meter_good: 'Long enough',
  meter_long: 'At most 128 characters',
  working: 'One moment…',
  continue: 'Continue',
  back_to_sign_in: 'Back to sign in',
  mfa: 'Confirm it is you',
  mfa_text: 'Enter the 6 digits your authenticator app shows now.',
  code: 'Code',
  recovery_code: 'Recovery code',
  use_recovery: 'Use a recovery code instead',
  use_totp: 'Use the authenticator app instead',
  verify: 'Confirm',
  reset: 'Reset your password',
  reset_text: 'We send a link if the address belongs to an account.',
  send_link: 'Send the link',
  reset_sent: 'If this address belongs to an account, a link is on its way. It works for 30 minutes.',
  reset_confirm: 'Choose a new password',
  save_password: 'Save password',
  reset_done: 'The password is saved. You can sign in with it now.',
  change: 'Choose a new password',
  change_text: 'The password you were given works once. Choose one that only you know.',
  verify_email: 'Confirm your email address',
  verify_email_text: 'We sent you a link. Open it on this device, or ask for another one.',
  verify_now: 'Confirm the address',
  verify_ready: 'One more step: confirm that this address is yours.',
  verify_done: 'Your email address is confirmed.',
  send_again: 'Send another link',
  sent_again: 'If the address waits for confirmation, another link is on its way.',
  consent: 'Allow access?',
  consent_text: '{name} asks to:',
  consent_unknown: 'An application',
  accounts: 'Accounts to share',
  all: 'All',
  none: 'None',
  approve: 'Allow',
  deny: 'Deny',
  consent_foot: 'You can take this back at any time in your account.',
  device: 'Connect a device',
  device_text: 'Enter the code that your device shows.',
  device_code: 'Device code',
  device_found: '{name} wants to connect as you. Only allow it if you started this.',
  device_approved: 'The device is connected. You can close this page.',
  device_denied: 'The device was not connected. You can close this page.',
  ciba: 'Allow assisted sign-in?',
  ciba_text: '{actor} of {name} wants to act for you.',
  ciba_own: '{name} wants to act for you.',
  ciba_message: 'Compare this text with what you were told',
  ciba_until: 'This request ends at {time}.',
  ciba_approved: 'Allowed. You can close this page.',
  ciba_denied: 'Denied. Nobody acts for you. You can close this page.',
  wallet: 'Sign in with a wallet',
  wallet_text: 'Your wallet signs a message. This costs nothing and moves nothing.',
  wallet_connect: 'Connect wallet',
  wallet_missing: 'No wallet was found in this browser. Install one or sign in with your email.',
  wallet_declined: 'The wallet did not answer. Unlock it, and allow what it asks.',
  wallet_sign_in: 'Sign in with a wallet',
  wallets: 'Wallets',
  wallets_text: 'Sign in with a wallet in place of the password.',
  wallet_password: 'Your password, to link or remove one',
  wallet_link: 'Link a wallet',
  wallet_remove: 'Remove',
  recovery: 'Recover your account',
  recovery_text: 'Without your password and your second factor, a person has to help.',
  recovery_steps: [
    'Try a recovery code: each of them works once.',
    'Reset the password if you can still read your mail.',
    'Otherwise ask an owner of your organization. They can confirm who you are and invite you again.',
  ],
  recovery_lead: 'Without your second factor the way back takes time.',
  recovery_here: 'Otherwise enter your email here. We send a link; what follows takes time, so that a stranger can be stopped.',
  recovery_ask: 'Recover the account',
  recovery_sent: 'If this address belongs to an account and is confirmed, a link is on its way. It works for 30 minutes.',
  recovery_confirm: 'Confirm the recovery',
  recovery_confirm_text:
    'At the end you choose a new password, and your authenticator app, recovery codes and passkeys are taken away. Signing in as usual ends the recovery.',
  recovery_wait: 'Confirmed. From {time} on you can choose a new password. You get a mail with the link then.',
  recovery_judged: 'Confirmed. An administrator decides now. You get a mail with the link when it is approved.',
  recovery_wait_judged:
    'Confirmed. An administrator decides now. Once it is approved, and not before {time}, you get a mail with the link.',
  recovery_cancel: 'End the recovery',
  recovery_cancel_text: 'Nothing of your account is changed then.',
  recovery_cancelled: 'The recovery is ended. Nothing was changed.',
  no_password: 'This account has no password. For this you sign in a moment before.',
  sign_in_again: 'Sign in again',
  recovery_open:
    'A recovery of this account is under way: somebody confirmed by a mail of yours that the second factor is lost. If it was not you, end it, and look after your mailbox.',
  recovery_finish_text: 'Your authenticator app, recovery codes and passkeys are taken away, and every device is signed out.',
  error: 'This did not work',
  error_text: 'The application sent you here with a request that cannot be completed. Go back to it and start again.',
  error_reference: 'Reference',
  not_found: 'Page not found',
  not_found_text: 'This address leads nowhere. If you followed a link, it may be old.',
  passkey_enroll: 'Add a passkey',
  passkey_verify: 'Sign in with a passkey',
  passkey_text: 'Passkeys are not available here yet.',
  passkeys: 'Passkeys',
  passkeys_text: 'Sign in with your fingerprint, face or device PIN instead of the password.',
  passkey_name: 'Name of the new passkey',
  passkey_added: 'The passkey is set up.',
  passkey_used: 'Last used {time}',
  passkey_unused: 'Not used yet',
  passkey_suspended: 'Stopped: a copy of it was used.',
  passkey_remove: 'Remove',
  passkey_remove_named: 'Remove {name}',
  passkey_removed: '{name} is removed.',
  passkey_rename: 'Rename {name}',
  loading: 'Loading…',
  sign_up_closed: 'New accounts are not opened here. Ask somebody who is already there to invite you.',
  account: 'Your account',
  second_factor: 'Authenticator app',
  second_factor_on: 'Signing in asks for a code of your app. {n} recovery codes are left.',
  second_factor_none: 'No authenticator app is set up.',
  second_factor_off: 'Signing in asks for the password alone.',
  second_factor_manage: 'Change',
  second_factor_begin: 'Enter your password to set up an authenticator app.',
  second_factor_change: 'Enter your password to get new recovery codes or to remove the app.',
  renew_codes: 'New recovery codes',
  remove_factor: 'Remove the app',
  scan: 'Scan this with your authenticator app, then enter the code it shows.',
  qr_label: 'QR code of the secret below',
  secret_text: 'If you cannot scan it, type this secret into the app:',
  otpauth_link: 'Open the app on this device',
  codes_once: 'Keep these recovery codes in a safe place. Each works once, and this page shows them only now.',
  factor_removed: 'The app is removed. Signing in asks for the password alone.',
  devices: 'Where you are signed in',
  this_device: 'This device',
  unknown_device: 'Unknown device',
  last_seen: 'Last used {time}',
  end_device: 'Sign out',
  end_others: 'Sign out all other devices',
  applications: 'Applications that act for you',
  applications_none: 'No application acts for you.',
  application_since: 'Since {time}',
  withdraw: 'Take back',
  withdraw_from: 'Take back what {name} may do',
  withdrawn: '{name} may not act for you any more.',
  change_password: 'Change the password',
  back_to_account: 'Back to your account',
  no_script: 'Signing in needs JavaScript. Your password is never sent without it.',
  required: 'Fill this in.',
  bad_email: 'Enter an email address.',
  unexpected: 'The service did not answer as expected. Try again in a moment.',
  unreachable: 'The service could not be reached. Check your connection and try again.',
  reference: 'Reference: {id}',
  missing_link: 'This link is not complete. Ask for a new one.',
  /** What the scopes of OpenID mean; those of services say it themselves. */
  scopes: {
    openid: 'Know that it is you',
    email: 'See your e-mail address',
    profile: 'See your name',
    offline_access: 'Stay signed in when you are away',
  } as Record<string, string>,
  errors: {
    access_denied: 'Access was denied, or the request was cancelled.',
    invalid_request: 'The request of the application is not valid.',
    invalid_client: 'The application is not known here.',
    invalid_scope: 'The application asked for something that it may not have.',
    unauthorized_client: 'The application may not sign people in this way.',
    server_error: 'Something failed on our side.',
    temporarily_unavailable: 'The service is busy. Try again in a moment.',
    session_expired: 'Signing in took too long. Start again from the application.',
    login_required: 'You have to sign in first.',
  } as Record<string, string>,
  problems: {
    invalid_credentials: 'Email and password do not match.',
    weak_password: 'This password is too easy to guess or has appeared in a leak. Choose another one.',
    rate_limited: 'Too many attempts. Wait a moment and try again.',
    account_locked: 'Too many attempts. The account is locked for 15 minutes.',
    csrf_mismatch: 'This page is out of date. Reload it and try again.',
    bad_origin: 'This page is out of date. Reload it and try again.',
    token_expired: 'This link has expired. Ask for a new one.',
    invalid_code: 'This code is not right. Codes change every 30 seconds.',
    wrong_password: 'This is not the password of your account.',
    signup_disabled: 'New accounts are not opened here.',
    registry_away: 'Opening accounts is not possible at the moment. Try again soon.',
    wallet_disabled: 'Nobody signs in with a wallet here. Use your email and password.',
    wallet_refused: 'The signature is not of this wallet. Try again.',
    wallet_unknown: 'No account signs in with this wallet. Sign in with your email, then link it on the page of your account.',
    wallet_taken: 'This wallet is linked to an account already.',
    wallet_limit: 'Your account has ten wallets. Remove one first.',
    wallet_not_found: 'This wallet is not linked to your account. Reload the page.',
    passkey_refused: 'This passkey is not accepted here. Use another one, or your password.',
    passkeys_off: 'Passkeys are not used here.',
    passkey_cancelled: 'No passkey was used. Try again, or use your password.',
    too_many_passkeys: 'There are as many passkeys as there may be. Remove one first.',
    passkey_not_found: 'This passkey was removed already. Reload the page.',
    sso_off: 'Single sign-on is not set up here. Use your email and password.',
    sso_refused: 'Your organization did not let you in. Try again, or use your password.',
    sso_no_account: 'There is no account for you here yet. Ask somebody who is already there to invite you.',
    sso_unavailable: 'Your organization’s sign-in cannot be reached. Try again in a moment.',
    mfa_enrolled: 'An authenticator app is set up already. Reload the page.',
    mfa_not_enrolled: 'No authenticator app is set up. Reload the page.',
    sign_in_again: 'Sign in again, and then do this within five minutes.',
    last_means: 'Nothing would be left to sign in with. Add another wallet or a passkey first.',
    recovery_waits:
      'The rules here became stricter, so the recovery has to wait again. A mail says what is missing, and another one brings a new link.',
    recovery_off: 'Accounts are not recovered here. Ask an owner of your organization.',
  } as Record<string, string>,
  notices: {
    password_changed: 'Your password is changed.',
    password_reset: 'The password is saved. You can sign in with it now.',
    account_recovered: 'Your account is recovered. Sign in with the new password, and set up a second factor again.',
    invitation_joined: 'Your email address is confirmed, and you are a member. Sign in to go on.',
    email_verified: 'Your email address is confirmed. You can sign in now.',
    signed_out: 'You are signed out.',
  } as Record<string, string>,
};

export type Messages = typeof en;
export type Locale = 'en' | 'de' | 'ar';

interface Language {
  readonly messages: Messages;
  readonly dir: 'ltr' | 'rtl';
  /** As its speakers call it. */
  readonly name: string;
}

export const LANGUAGES: Readonly<Record<Locale, Language>> = {
  en: { messages: en, dir: 'ltr', name: 'English' },
  de: { messages: de, dir: 'ltr', name: 'Deutsch' },
  ar: { messages: ar, dir: 'rtl', name: 'العربية' },
};

/** The language of a tag (BCP 47), where it is one of ours. */
export const spokenOf = (tag: string | null | undefined): Locale | undefined => {
  const language = (tag ?? '').toLowerCase().split('-')[0] as string;
  return Object.hasOwn(LANGUAGES, language) ? (language as Locale) : undefined;
};

export function messagesOf(locale: string): Messages {
  return LANGUAGES[spokenOf(locale) ?? 'en'].messages;
}

/** What the address asks for (`ui_locales`, most wanted first: OpenID Connect Core 3.1.2.1), else what the browser does. */
export function localeOf(header: string | undefined, uiLocales = ''): Locale {
  const asked = uiLocales.split(' ').find(spokenOf);
  if (asked) return spokenOf(asked) as Locale;
  const wanted = (header ?? '').split(',').map(part => {
    const [tag = '', ...params] = part.trim().split(';');
    const q = params.find(param => param.trim().toLowerCase().startsWith('q='));
    return { locale: spokenOf(tag.trim()), weight: q ? Number(q.trim().slice(2)) || 0 : 1 };
  });
  const [best] = wanted.filter(({ locale, weight }) => locale && weight > 0).sort((a, b) => b.weight - a.weight);
  return best?.locale ?? 'en';
}

export function filled(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ''));
}
