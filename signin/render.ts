import type { Assets } from './assets.ts';
import { html, type Markup } from './markup.ts';
import { LANGUAGES, type Locale } from './messages.ts';
import { inLanguage, type Query } from './oauth-context.ts';
import type { Step } from './step.ts';
import { mfa, passwordChange, passwordReset, passwordResetConfirm, signIn, signUp, ssoReturn, verifyEmail } from './steps/account-steps.ts';
import { account, accountMfa } from './steps/own-account-steps.ts';
import { ciba, consent, device, wallet } from './steps/approval-steps.ts';
import { accountRecovery, recoveryCancel, recoveryConfirm, recoveryFinish } from './steps/recovery-steps.ts';
import { error, notFound, passkeyEnroll, passkeyVerify } from './steps/static-steps.ts';
import type { Invitation, StepPage } from './steps/step-page.ts';

export interface RenderInput {
  readonly locale: Locale;
  readonly query: Query;
  readonly assets: Assets;
  /** Name of the platform, the organization or the application the visitor goes to. */
  readonly displayName: string;
  /** What the server already knows, so that the first paint is right; the rest arrives with `GET /v1/branding`. */
  readonly branding?: { readonly logo_url?: string | null; readonly theme_mode?: string | null } | undefined;
  /** Shows passkeys on the sign-in page and at the account. */
  readonly passkeys?: boolean | undefined;
  /** Lets people recover accounts here; explains who else helps when absent. */
  readonly recovery?: boolean | undefined;
  /** The provider of single sign-on, by its name. */
  readonly sso?: string | undefined;
  /** Hides the way to sign-up; shown when absent. */
  readonly allowSignUp?: boolean | undefined;
  /** Says who invites where to, and takes the invited address as the one that is meant. */
  readonly invitation?: Invitation | undefined;
  /** Shows the way to the wallet page; hidden when absent. */
  readonly walletSignIn?: boolean | undefined;
}

const PAGES: Record<Step, StepPage> = {
  'sign-in': signIn,
  'sign-up': signUp,
  mfa,
  'password-reset': passwordReset,
  'password-reset/confirm': passwordResetConfirm,
  'password-change': passwordChange,
  'verify-email': verifyEmail,
  consent,
  device,
  ciba,
  wallet,
  error,
  'account-recovery': accountRecovery,
  'account-recovery/confirm': recoveryConfirm,
  'account-recovery/cancel': recoveryCancel,
  'account-recovery/finish': recoveryFinish,
  sso: ssoReturn,
  account,
  'account/mfa': accountMfa,
  'not-found': notFound,
  'passkey-enroll': passkeyEnroll,
  'passkey-verify': passkeyVerify,
};

/** The whole document of a step; readable before any script has run. */
export function renderStep(
  step: Step,
  {
    locale,
    query,
    assets,
    displayName,
    branding,
    allowSignUp,
    walletSignIn,
    passkeys = false,
    recovery = false,
    sso,
    invitation,
  }: RenderInput,
): string {
  const { messages: m, dir } = LANGUAGES[locale];
  const { title, lead, body, foot, wide } = PAGES[step]({
    m,
    query,
    displayName,
    allowSignUp,
    walletSignIn,
    passkeys,
    recovery,
    sso,
    invitation,
  });
  const theme = branding?.theme_mode === 'light' || branding?.theme_mode === 'dark' ? branding.theme_mode : undefined;
  const logo = branding?.logo_url && /^(https:\/\/|\/(?!\/))/.test(branding.logo_url) ? branding.logo_url : undefined;
  return html`<!doctype html>
<html lang="${locale}" dir="${dir}"${theme && html` data-theme="${theme}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>${displayName ? `${title} · ${displayName}` : title}</title>
<link rel="stylesheet" href="${assets.css}">
<script type="module" src="${assets.js}"></script>
</head>
<body data-step="${step}">
<main class="sheet"${wide && html` data-wide`}>
<header class="brand"><span class="logo" data-logo>${logo && html`<img src="${logo}" alt="">`}</span><span class="brand-name" dir="auto"
  data-brand-name>${displayName}</span></header>
<h1 tabindex="-1">${title}</h1>
${lead && html`<p class="lead">${lead}</p>`}
${body}
<noscript><p class="notice">${m.no_script}</p></noscript>
${foot && html`<p class="foot">${foot}</p>`}
</main>
<nav class="languages" aria-label="${m.language}" data-languages>${languages(locale, query)}</nav>
</body>
</html>
`.text;
}

/** A link per language, no script needed; the one that is shown is no link. */
function languages(shown: Locale, query: Query): Markup[] {
  return Object.entries(LANGUAGES).map(([locale, { name, dir }]) =>
    locale === shown
      ? html`<span lang="${locale}" dir="${dir}" aria-current="true">${name}</span>`
      : html`<a href="${inLanguage(locale, query)}" lang="${locale}" hreflang="${locale}" dir="${dir}">${name}</a>`,
  );
}
