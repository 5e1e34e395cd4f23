import { AttachedForm } from '../attached-form.ts';
import { ApiProblem, type SignInAnswer } from '../identity-api.ts';
import type { Page } from '../page.ts';

/** Where an answer leads. The code for the second factor is only known to automation. */
async function follow(page: Page, answer: SignInAnswer, code?: string): Promise<void> {
  const { status, mfa, next } = answer;
  if (status === 'mfa_required' && mfa && code)
    return follow(page, await page.api.verifyMfa({ challenge_id: mfa.challenge_id, method: 'totp', code }));
  page.go(next);
}

export async function signIn(page: Page, { email, password, code }: { email: string; password: string; code?: string }): Promise<void> {
  await follow(page, await page.api.signIn({ email: email.trim(), password, oauth: page.oauth }), code);
}

export async function signUp(
  page: Page,
  { email, password, display_name }: { email: string; password: string; display_name?: string },
): Promise<void> {
  const name = display_name?.trim();
  await follow(page, await page.api.signUp({ email: email.trim(), password, ...(name ? { display_name: name } : {}), oauth: page.oauth }));
}

type Attach = (page: Page, form: HTMLFormElement) => AttachedForm;

export const attachSignIn: Attach = (page, form) => {
  const sso = page.find<HTMLButtonElement>('[data-sso]');
  const note = page.find('[data-sso-note]');
  const form_ = new AttachedForm(form, page.m, ({ email = '', password = '' }) => signIn(page, { email, password }));
  if (!sso || !note) return form_;
  sso.disabled = false;
  sso.addEventListener('click', () => {
    // Until somebody has set up a provider, the button says so.
    if (sso.dataset['ssoOn'] === undefined) note.hidden = false;
    else void form_.during(sso, async () => page.leave((await page.api.beginSso(page.oauth)).redirect_to)).catch(() => undefined);
  });
  return form_;
};

/** Back from the provider of the organization: what it answered goes to the service at once, and out of the address. */
export const attachSsoReturn: Attach = (page, form) => {
  const attached = new AttachedForm(form, page.m, async () => {
    const { state = '', code, error, iss } = page.query;
    history.replaceState(null, '', location.pathname);
    if (!state) throw incomplete(page);
    await follow(
      page,
      await page.api.finishSso({ state, ...(code ? { code } : {}), ...(error ? { error } : {}), ...(iss ? { iss } : {}) }),
    );
  });
  void attached
    .submit()
    .catch(() => undefined)
    .finally(() => page.find('[data-pending]')?.setAttribute('hidden', ''));
  return attached;
};

export const attachSignUp: Attach = (page, form) =>
  new AttachedForm(form, page.m, ({ email = '', password = '', display_name = '' }) => signUp(page, { email, password, display_name }));

export const attachMfa: Attach = (page, form) => {
  let method: 'totp' | 'recovery_code' = 'totp';
  const input = page.find<HTMLInputElement>('#code') as HTMLInputElement;
  const toggle = page.find<HTMLButtonElement>('[data-method]');
  const show = () => {
    const recovery = method === 'recovery_code';
    const label = page.find('label[for=code]');
    if (label) label.textContent = recovery ? page.m.recovery_code : page.m.code;
    if (toggle) toggle.textContent = recovery ? page.m.use_totp : page.m.use_recovery;
    input.maxLength = recovery ? 64 : 6;
    input.inputMode = recovery ? 'text' : 'numeric';
    input.value = '';
  };
  const methods = page.query['methods']?.split(',') ?? [];
  if (methods.length > 0 && !methods.includes('totp')) method = 'recovery_code';
  if (method === 'recovery_code') show();
  if (toggle) {
    toggle.disabled = false;
    toggle.hidden = methods.length > 0 && !(methods.includes('recovery_code') && methods.includes('totp'));
    toggle.addEventListener('click', () => {
      method = method === 'totp' ? 'recovery_code' : 'totp';
      show();
      input.focus();
    });
  }
  return new AttachedForm(form, page.m, async ({ code = '' }) =>
    follow(page, await page.api.verifyMfa({ challenge_id: page.query['challenge_id'] ?? '', method, code: code.replace(/\s/g, '') })),
  );
};

export const attachPasswordReset: Attach = (page, form) =>
  new AttachedForm(form, page.m, async ({ email = '' }) => {
    await page.api.requestReset(email.trim());
    form.hidden = true;
    page.say(page.m.reset_sent);
  });

export const attachPasswordResetConfirm: Attach = (page, form) => {
  const { token } = page;
  const attached = new AttachedForm(form, page.m, async ({ password = '' }) => {
    if (!token) throw incomplete(page);
    await page.api.resetPassword({ token, password });
    page.goTo('sign-in', { notice: 'password_reset' });
  });
  if (!token) attached.show(incomplete(page));
  return attached;
};

/** Mail programs that break a line break the link. */
export const incomplete = ({ m }: Page) => new ApiProblem(0, { code: 'missing_link', detail: m.missing_link }, '');

export const attachPasswordChange: Attach = (page, form) =>
  new AttachedForm(form, page.m, async ({ password = '' }) => follow(page, await page.api.changePassword({ password, oauth: page.oauth })));

export const attachVerifyEmail: Attach = (page, form) => {
  const { token } = page;
  if (token) {
    page.find('[data-ask]', form)?.remove();
    const lead = page.find('[data-lead]');
    const button = page.find('[type=submit]', form);
    if (lead) lead.textContent = lead.dataset['ready'] ?? page.m.verify_ready;
    if (button) button.textContent = page.m.verify_now;
  }
  return new AttachedForm(form, page.m, async ({ email = '' }) => {
    if (token) {
      const { joined, email: invited } = await page.api.verifyEmail(token);
      return page.goTo('sign-in', { notice: joined ? 'invitation_joined' : 'email_verified', login_hint: invited });
    }
    await page.api.requestVerification(email.trim());
    form.hidden = true;
    page.say(page.m.sent_again);
  });
};
