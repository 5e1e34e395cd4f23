import { attachAccount, attachAccountMfa } from './flows/own-account-flows.ts';
import {
  attachMfa,
  attachPasswordChange,
  attachPasswordReset,
  attachPasswordResetConfirm,
  attachSignIn,
  attachSignUp,
  attachSsoReturn,
  attachVerifyEmail,
} from './flows/account-flows.ts';
import { attachCiba, attachConsent, attachDevice, attachWallet } from './flows/approval-flows.ts';
import type { AttachedForm } from './attached-form.ts';
import { exposeAutomation } from './automation.ts';
import { applyBranding, safeBranding } from './branding.ts';
import { correlation } from './correlation.ts';
import { IdentityApi } from './identity-api.ts';
import { Page } from './page.ts';
import { attachPasskeys } from './flows/passkey-flows.ts';
import { attachPasswordField } from './password-field.ts';
import { attachRecovery, attachRecoveryCancel, attachRecoveryConfirm, attachRecoveryFinish } from './flows/recovery-flows.ts';

const FLOWS: Record<string, (page: Page, form: HTMLFormElement) => AttachedForm> = {
  'sign-in': attachSignIn,
  'sign-up': attachSignUp,
  mfa: attachMfa,
  'password-reset': attachPasswordReset,
  'password-reset/confirm': attachPasswordResetConfirm,
  'password-change': attachPasswordChange,
  'verify-email': attachVerifyEmail,
  consent: attachConsent,
  device: attachDevice,
  ciba: attachCiba,
  wallet: attachWallet,
  'account-recovery': attachRecovery,
  'account-recovery/confirm': attachRecoveryConfirm,
  'account-recovery/cancel': attachRecoveryCancel,
  'account-recovery/finish': attachRecoveryFinish,
  sso: attachSsoReturn,
  account: attachAccount,
  'account/mfa': attachAccountMfa,
};

const page = new Page(new IdentityApi(correlation(), document.documentElement.lang));
const step = document.body.dataset['step'] ?? '';

// Whatever becomes of the branding, the page works without it.
page.api.branding().then(
  answer => applyBranding(safeBranding(answer)),
  () => undefined,
);

// A mail's token stands behind `#`, and goes along into another language.
for (const link of document.querySelectorAll<HTMLAnchorElement>('[data-languages] a')) link.hash = location.hash;
for (const field of document.querySelectorAll<HTMLElement>('[data-password]')) attachPasswordField(field, page.m);
const element = page.find<HTMLFormElement>('[data-form]');
const form = element ? FLOWS[step]?.(page, element) : undefined;
if (step === 'sign-in' && form) attachPasskeys(page, form);
exposeAutomation(page, step, form);
