import { html, type Markup } from '../markup.ts';
import type { Messages } from '../messages-en.ts';
import { pathWith, type Query } from '../oauth-context.ts';
import { alertSlot, form, notice, passwordField, submitButton, textField } from './controls.ts';
import type { StepPage } from './step-page.ts';

/** No authorization is under way here; the language goes along. */
const language = ({ ui_locales }: Query): Query => ({ ui_locales });

function passkeySection(m: Messages): Markup {
  return html`<section data-passkeys><h2>${m.passkeys}</h2><p class="sub">${m.passkeys_text}</p><p class="notice" role="status"
    tabindex="-1" data-passkeys-notice hidden></p><ul class="scopes" data-passkey-list></ul><form method="post" novalidate
    data-passkey-form>${alertSlot()}${textField({
      name: 'passkey_name',
      label: m.passkey_name,
      autocomplete: 'off',
      latin: false,
      maxlength: 60,
    })}${passwordField(m, { fresh: false, name: 'passkey_password' })}${submitButton(m.passkey_enroll, '', true)}</form></section>`;
}

/** Who one is here, where one is signed in, and the password. Everything personal arrives with the script. */
export const account: StepPage = ({ m, query, passkeys }) => ({
  title: m.account,
  wide: true,
  lead: html`<bdi data-email></bdi>`,
  body: html`${notice(m.notices[query['notice'] ?? ''])}<div data-pending><p class="sub" role="status">${m.loading}</p></div><div
    data-loaded hidden><section data-recovery hidden><p class="alert" role="status" tabindex="-1"
    data-recovery-text>${m.recovery_open}</p><p class="aside"><button type="button" class="btn"
    data-recovery-end>${m.recovery_cancel}</button></p></section><section><h2>${m.second_factor}</h2><p class="sub" data-factor></p><p><a
    href="${pathWith('/account/mfa', language(query))}" data-factor-link>${m.second_factor_manage}</a></p></section>${
      passkeys && passkeySection(m)
    }<section><h2>${m.devices}</h2><div class="alert" role="alert" tabindex="-1" data-devices-alert hidden></div><ul
    class="scopes" data-devices></ul><p class="aside"><button type="button" class="link" data-end-others hidden
    disabled>${m.end_others}</button></p></section><section><h2>${m.applications}</h2><div class="alert" role="alert" tabindex="-1"
    data-applications-alert hidden></div><p class="notice" role="status" tabindex="-1" data-applications-notice hidden></p><ul
    class="scopes" data-applications></ul><p class="sub" data-applications-none hidden>${m.applications_none}</p></section><section
    data-wallets-section hidden><h2>${m.wallets}</h2><p class="sub">${m.wallets_text}</p><form method="post" novalidate
    data-wallets>${alertSlot()}<ul class="scopes" data-wallet-list></ul>${passwordField(m, {
      fresh: false,
      name: 'wallet_password',
      label: m.wallet_password,
    })}<div class="stack" data-wallet-add>${submitButton(m.wallet_link, 'add')}</div></form></section><section
    data-change-password><h2>${m.change_password}</h2>${form(html`<input type="email" name="email" autocomplete="username" value="" hidden
    readonly data-username>${passwordField(m, { fresh: false, name: 'current_password' })}${passwordField(m, {
      fresh: true,
    })}${submitButton(m.save_password)}`)}</section></div>`,
});

/** Three faces of one page: the password once more, then the app to set up, then the recovery codes, shown once. */
export const accountMfa: StepPage = ({ m, query }) => ({
  title: m.second_factor,
  lead: html`<span data-lead>${m.loading}</span>`,
  body: html`${notice(undefined)}<div data-step-password hidden>${form(html`${passwordField(m, { fresh: false, focus: true })}<div
    class="stack">${submitButton(m.continue)}<span data-when-enrolled
    hidden>${submitButton(m.remove_factor, 'remove', true)}</span></div>`)}</div><div data-step-app hidden><div class="qr" data-qr
    role="img" aria-label="${m.qr_label}"></div><p class="sub">${m.secret_text}</p><p class="secret"><code data-secret></code></p><p
    class="aside"><a data-otpauth>${m.otpauth_link}</a></p><form method="post" novalidate
    data-confirm>${alertSlot()}${textField({
      name: 'code',
      label: m.code,
      autocomplete: 'one-time-code',
      inputmode: 'numeric',
      maxlength: 6,
    })}${submitButton(m.verify)}</form></div><div data-step-codes hidden><ul class="scopes codes" data-codes></ul></div>`,
  foot: html`<a href="${pathWith('/account', language(query))}">${m.back_to_account}</a>`,
});
