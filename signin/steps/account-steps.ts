import { html } from '../markup.ts';
import { filled } from '../messages.ts';
import type { Messages } from '../messages-en.ts';
import { pathWith } from '../oauth-context.ts';
import { form, notice, passwordField, submitButton, textField } from './controls.ts';
import type { Invitation, StepPage } from './step-page.ts';

/** Who invites where to, in one sentence. */
const invited = (m: Messages, { organization: name, inviter }: Invitation): string =>
  inviter ? filled(m.invited_by, { name, inviter }) : filled(m.invited, { name });

export const signIn: StepPage = ({ m, query, displayName, allowSignUp, walletSignIn, passkeys, sso, invitation }) => ({
  title: m.sign_in,
  lead: invitation ? invited(m, invitation) : displayName ? filled(m.sign_in_to, { name: displayName }) : undefined,
  body: html`${notice(m.notices[query['notice'] ?? ''])}${form(html`${textField({
    name: 'email',
    label: m.email,
    type: 'email',
    autocomplete: passkeys ? 'username webauthn' : 'username',
    inputmode: 'email',
    value: query['login_hint'] ?? invitation?.email,
    focus: !(query['login_hint'] ?? invitation),
  })}${passwordField(m, { fresh: false, focus: Boolean(query['login_hint'] ?? invitation) })}<p class="aside"><a
    href="${pathWith('/password-reset', query)}">${m.forgot}</a></p>${submitButton(m.sign_in)}`)}<div
    class="stack after">${passkeys && html`<button type="button" class="btn" data-passkey disabled>${m.passkey_verify}</button>`}<button
    type="button" class="btn" data-sso${sso && html` data-sso-on`} disabled>${sso ? filled(m.sso_with, { name: sso }) : m.sso}</button><p
    class="sub center" role="status" data-sso-note hidden>${m.sso_note}</p>${
      walletSignIn &&
      html`<a class="btn"
    href="${pathWith('/wallet', query)}">${m.wallet_sign_in}</a>`
    }</div>`,
  foot: allowSignUp === false ? undefined : html`${m.no_account} <a href="${pathWith('/sign-up', query)}">${m.create_account}</a>`,
});

/** Where the provider of the organization sends the browser back to. It shows; the script takes the answer to the service (H-08). */
export const ssoReturn: StepPage = ({ m, query }) => ({
  title: m.sso,
  body: form(html`<p class="sub" role="status" data-pending>${m.working}</p>`),
  // The state in the address is the provider's, not the application's.
  foot: html`<a href="${pathWith('/sign-in', { ui_locales: query['ui_locales'] })}">${m.back_to_sign_in}</a>`,
});

export const signUp: StepPage = ({ m, query, allowSignUp, invitation }) => ({
  title: invitation ? filled(m.join, { name: invitation.organization }) : m.create_account,
  lead: allowSignUp === false ? m.sign_up_closed : invitation ? `${invited(m, invitation)} ${m.sign_up_text}` : m.sign_up_text,
  body:
    allowSignUp === false
      ? html``
      : form(
          html`${textField({
            name: 'email',
            label: m.email,
            type: 'email',
            autocomplete: 'username',
            inputmode: 'email',
            value: invitation?.email ?? query['login_hint'],
            fixed: invitation !== undefined,
            focus: !invitation,
          })}${textField({
            name: 'display_name',
            label: m.display_name,
            autocomplete: 'name',
            required: false,
            note: m.optional,
            latin: false,
            maxlength: 120,
            focus: invitation !== undefined,
          })}${passwordField(m, { fresh: true })}${submitButton(m.create_account)}`,
        ),
  foot: html`${m.have_account} <a href="${pathWith('/sign-in', query)}">${m.sign_in}</a>`,
});

export const mfa: StepPage = ({ m, query }) => ({
  title: m.mfa,
  lead: html`<span data-mfa-text>${m.mfa_text}</span>`,
  body: html`${form(
    html`${textField({
      name: 'code',
      label: m.code,
      autocomplete: 'one-time-code',
      inputmode: 'numeric',
      maxlength: 6,
      focus: true,
    })}${submitButton(m.verify)}`,
  )}<p class="aside center"><button type="button" class="link" data-method
    disabled>${m.use_recovery}</button></p>`,
  foot: html`<a href="${pathWith('/account-recovery', query)}">${m.recovery}</a>`,
});

export const passwordReset: StepPage = ({ m, query, recovery }) => ({
  title: m.reset,
  lead: m.reset_text,
  body: html`${notice(undefined)}${form(
    html`${textField({
      name: 'email',
      label: m.email,
      type: 'email',
      autocomplete: 'username',
      inputmode: 'email',
      value: query['login_hint'],
      focus: true,
    })}${submitButton(m.send_link)}`,
  )}`,
  foot: html`${recovery && html`<a href="${pathWith('/account-recovery', query)}">${m.recovery}</a> · `}<a
    href="${pathWith('/sign-in', query)}">${m.back_to_sign_in}</a>`,
});

export const passwordResetConfirm: StepPage = ({ m, query }) => ({
  title: m.reset_confirm,
  body: form(html`${passwordField(m, { fresh: true, focus: true })}${submitButton(m.save_password)}`),
  foot: html`<a href="${pathWith('/sign-in', query)}">${m.back_to_sign_in}</a>`,
});

export const passwordChange: StepPage = ({ m, query }) => ({
  title: m.change,
  lead: m.change_text,
  body: form(
    html`${
      query['login_hint'] &&
      html`<input type="email" name="email" autocomplete="username" value="${query['login_hint']}" hidden
      readonly>`
    }${passwordField(m, { fresh: true, focus: true })}${submitButton(m.save_password)}`,
  ),
  foot: html`<a href="${pathWith('/sign-in', query)}">${m.back_to_sign_in}</a>`,
});

/**
 * Asks for another link; with the token of a mail it asks for the click that confirms (H-08). The token stands behind `#`, so only the
 * script can tell.
 */
export const verifyEmail: StepPage = ({ m, query, invitation }) => ({
  title: m.verify_email,
  lead: html`<span data-lead${invitation && html` data-ready="${filled(m.verify_join, { name: invitation.organization })}"`}>${
    invitation ? `${invited(m, invitation)} ${m.verify_email_text}` : m.verify_email_text
  }</span>`,
  body: html`${notice(undefined)}${form(
    html`<div data-ask>${textField({
      name: 'email',
      label: m.email,
      type: 'email',
      autocomplete: 'username',
      inputmode: 'email',
      value: query['login_hint'] ?? invitation?.email,
    })}</div>${submitButton(m.send_again)}`,
  )}`,
  foot: html`<a href="${pathWith('/sign-in', query)}">${m.back_to_sign_in}</a>`,
});
