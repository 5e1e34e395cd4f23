import { html } from '../markup.ts';
import { pathWith } from '../oauth-context.ts';
import { form, notice, passwordField, submitButton, textField } from './controls.ts';
import type { StepInput, StepPage } from './step-page.ts';

const back = ({ m, query }: StepInput) => html`<a href="${pathWith('/sign-in', query)}">${m.back_to_sign_in}</a>`;

/** Where accounts are not recovered: who can help, and nothing to send (doc1, sign-in 6). */
const explained: StepPage = input => ({
  title: input.m.recovery,
  lead: input.m.recovery_text,
  body: html`<ol class="steps">${input.m.recovery_steps.map(step => html`<li>${step}</li>`)}</ol>`,
  foot: html`<a href="${pathWith('/password-reset', input.query)}">${input.m.reset}</a> · ${back(input)}`,
});

/** What is quicker comes first. */
export const accountRecovery: StepPage = input => {
  const { m, query, recovery } = input;
  if (!recovery) return explained(input);
  return {
    title: m.recovery,
    lead: html`<span data-lead>${m.recovery_lead}</span>`,
    body: html`${notice(undefined)}<div data-ask><ol class="steps">${[...m.recovery_steps.slice(0, 2), m.recovery_here].map(
      step => html`<li>${step}</li>`,
    )}</ol>${form(
      html`${textField({
        name: 'email',
        label: m.email,
        type: 'email',
        autocomplete: 'username',
        inputmode: 'email',
        value: query['login_hint'],
      })}${submitButton(m.recovery_ask)}`,
    )}</div>`,
    foot: html`<a href="${pathWith('/password-reset', query)}">${m.reset}</a> · ${back(input)}`,
  };
};

/** Opening the link shows; the button confirms (H-08). */
export const recoveryConfirm: StepPage = input => {
  if (!input.recovery) return explained(input);
  const { m } = input;
  return {
    title: m.recovery_confirm,
    body: html`${notice(undefined)}${form(html`<p class="sub">${m.recovery_confirm_text}</p>${submitButton(m.verify)}`)}`,
    foot: back(input),
  };
};

/** Also where recovery was turned off meanwhile: nobody is kept from ending one. */
export const recoveryCancel: StepPage = input => {
  const { m } = input;
  return {
    title: m.recovery_cancel,
    body: html`${notice(undefined)}${form(html`<p class="sub">${m.recovery_cancel_text}</p>${submitButton(m.recovery_cancel)}`)}`,
    foot: back(input),
  };
};

export const recoveryFinish: StepPage = input => {
  if (!input.recovery) return explained(input);
  const { m } = input;
  return {
    title: m.reset_confirm,
    lead: m.recovery_finish_text,
    body: form(html`${passwordField(m, { fresh: true, focus: true })}${submitButton(m.save_password)}`),
    foot: back(input),
  };
};
