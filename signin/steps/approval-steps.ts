import { html } from '../markup.ts';
import { pathWith } from '../oauth-context.ts';
import { alertSlot, form, notice, submitButton, textField } from './controls.ts';
import type { StepPage } from './step-page.ts';

/** A layout of its own: what is asked for, the accounts to share, and two buttons of equal weight. */
export const consent: StepPage = ({ m, query }) => ({
  title: m.consent,
  wide: true,
  body: form(
    html`<div data-pending><p class="sub" role="status">${m.loading}</p></div><div data-loaded hidden><p class="client" data-client></p><ul
      class="scopes" data-scopes></ul>${
        query['consent_flow'] &&
        html`<fieldset class="accounts" data-accounts
      hidden><legend>${m.accounts}</legend><div class="row end"><button type="button" class="link" data-all>${m.all}</button><button
      type="button" class="link" data-none>${m.none}</button></div><div data-account-list></div></fieldset>`
      }<div
      class="pair">${submitButton(m.deny, 'deny', true)}${submitButton(m.approve, 'approve')}</div><p
      class="sub center">${m.consent_foot}</p></div>`,
  ),
});

export const device: StepPage = ({ m, query }) => ({
  title: m.device,
  lead: m.device_text,
  body: html`${notice(undefined)}${form(
    html`${textField({
      name: 'user_code',
      label: m.device_code,
      autocomplete: 'off',
      value: query['user_code'],
      maxlength: 9,
      focus: true,
    })}${submitButton(m.continue)}`,
  )}<form method="post" novalidate data-decision
    hidden>${alertSlot()}<p data-client></p><ul class="scopes" data-scopes></ul><div
    class="pair">${submitButton(m.deny, 'deny', true)}${submitButton(m.approve, 'approve')}</div></form>`,
});

export const ciba: StepPage = ({ m }) => ({
  title: m.ciba,
  body: html`${notice(undefined)}${form(html`<div data-pending><p class="sub" role="status">${m.loading}</p></div><div data-loaded
    hidden><p data-client></p><div class="binding" data-binding hidden><p class="sub">${m.ciba_message}</p><p class="binding-text"
    data-binding-text></p></div><p class="sub" data-until></p><div
    class="pair">${submitButton(m.deny, 'deny', true)}${submitButton(m.approve, 'approve')}</div></div>`)}`,
});

export const wallet: StepPage = ({ m, query }) => ({
  title: m.wallet,
  lead: m.wallet_text,
  body: form(submitButton(m.wallet_connect)),
  foot: html`<a href="${pathWith('/sign-in', query)}">${m.back_to_sign_in}</a>`,
});
