import { filled } from '../../messages.ts';
import type { Messages } from '../../messages-en.ts';
import { AttachedForm } from '../attached-form.ts';
import { type Account, ApiProblem, type ConsentClient } from '../identity-api.ts';
import type { Page } from '../page.ts';
import { signedByWallet } from './wallet-provider.ts';

const decisionOf = (value: string) => (value === 'approve' ? 'approve' : 'deny');

function element(tag: string, text: string, className = ''): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function showClient(m: Messages, root: HTMLElement, { client, scopes }: ConsentClient, sentence: string): void {
  const place = root.querySelector('[data-client]');
  if (place) place.textContent = filled(sentence, { name: client.name || m.consent_unknown });
  root
    .querySelector('[data-scopes]')
    ?.replaceChildren(...scopes.map(({ scope, title }) => element('li', m.scopes[scope] ?? (title || scope))));
}

/** A person who is not signed in does so first, and comes back to this very step. */
async function signedIn<T>(page: Page, resume: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof ApiProblem && error.code === 'session_required') page.goTo('sign-in', { return_to: resume });
    throw error;
  }
}

/** Shows what `load` brings, or what stood in its way. */
async function reveal(form: AttachedForm, load: () => Promise<void>): Promise<void> {
  const pending = form.element.querySelector<HTMLElement>('[data-pending]');
  const loaded = form.element.querySelector<HTMLElement>('[data-loaded]');
  try {
    await load();
    if (loaded) loaded.hidden = false;
  } catch (error) {
    form.show(error instanceof ApiProblem ? error : new ApiProblem(0, { code: 'unexpected' }, ''));
  }
  if (pending) pending.hidden = true;
}

export function attachConsent(page: Page, element_: HTMLFormElement): AttachedForm {
  const flow = page.query['consent_flow'];
  const chosen = () => [...element_.querySelectorAll<HTMLInputElement>('[name=account]:checked')].map(({ value }) => value);
  const form = new AttachedForm(element_, page.m, async (_values, decision) => {
    const { redirect_to } = await page.api.continueAuthorization({
      ...page.oauth,
      decision: decisionOf(decision),
      ...(flow ? { consent_flow: flow, selected_account_ids: chosen() } : {}),
    });
    page.leave(redirect_to);
  });
  void reveal(form, async () => {
    const [consent, accounts] = await Promise.all([
      page.api.consent(page.oauth.client_id ?? '', page.oauth.scope ?? ''),
      flow ? page.api.consentAccounts(flow) : undefined,
    ]);
    showClient(page.m, element_, consent, page.m.consent_text);
    if (accounts) showAccounts(element_, accounts.accounts, accounts.message);
  });
  return form;
}

function showAccounts(form: HTMLElement, accounts: readonly Account[], message: string | undefined): void {
  const fieldset = form.querySelector<HTMLElement>('[data-accounts]');
  const list = form.querySelector('[data-account-list]');
  if (!fieldset || !list) return;
  const boxes = accounts.map(({ id, name, mask, type, selected }) => {
    const label = element('label', '', 'account');
    const box = document.createElement('input');
    box.type = 'checkbox';
    box.name = 'account';
    box.value = id;
    box.checked = selected;
    label.append(box, element('b', name), element('span', [type, mask].filter(Boolean).join(' '), 'sub'));
    list.append(label);
    return box;
  });
  if (message) list.append(element('p', message, 'sub'));
  const controls = form.querySelector<HTMLElement>('[data-all]')?.parentElement;
  if (controls) controls.hidden = boxes.length === 0;
  const set = (on: boolean) => () => {
    for (const box of boxes) box.checked = on;
  };
  form.querySelector('[data-all]')?.addEventListener('click', set(true));
  form.querySelector('[data-none]')?.addEventListener('click', set(false));
  fieldset.hidden = false;
}

export function attachDevice(page: Page, element_: HTMLFormElement): AttachedForm {
  let code = '';
  const second = page.find<HTMLFormElement>('[data-decision]') as HTMLFormElement;
  new AttachedForm(second, page.m, async (_values, value) => {
    const decision = decisionOf(value);
    await page.api.decideDevice(code, decision);
    second.hidden = true;
    page.say(decision === 'approve' ? page.m.device_approved : page.m.device_denied);
  });
  return new AttachedForm(element_, page.m, async ({ user_code = '' }) => {
    const letters = user_code.toUpperCase().replace(/[^A-Z0-9]/g, '');
    code = letters.length === 8 ? `${letters.slice(0, 4)}-${letters.slice(4)}` : letters;
    showClient(
      page.m,
      second,
      await signedIn(page, `/device?${new URLSearchParams({ user_code: code })}`, () => page.api.device(code)),
      page.m.device_found,
    );
    element_.hidden = true;
    second.hidden = false;
    second.querySelector<HTMLButtonElement>('[value=deny]')?.focus();
  });
}

export function attachCiba(page: Page, element_: HTMLFormElement): AttachedForm {
  const id = page.query['auth_req_id'] ?? '';
  const form = new AttachedForm(element_, page.m, async (_values, value) => {
    const decision = decisionOf(value);
    await page.api.decideCiba(id, decision);
    element_.hidden = true;
    page.say(decision === 'approve' ? page.m.ciba_approved : page.m.ciba_denied);
  });
  void reveal(form, async () => {
    const { client, actor_display, binding_message, expires_at } = await signedIn(
      page,
      `/ciba?${new URLSearchParams({ auth_req_id: id })}`,
      () => page.api.ciba(id),
    );
    const place = page.find('[data-client]');
    if (place)
      place.textContent = filled(actor_display === client.name ? page.m.ciba_own : page.m.ciba_text, {
        actor: actor_display,
        name: client.name,
      });
    const binding = page.find('[data-binding]');
    const text = page.find('[data-binding-text]');
    if (binding && text && binding_message) {
      text.textContent = binding_message;
      binding.hidden = false;
    }
    const until = page.find('[data-until]');
    const time = new Intl.DateTimeFormat(document.documentElement.lang, { timeStyle: 'short' }).format(new Date(expires_at));
    if (until) until.textContent = filled(page.m.ciba_until, { time });
  });
  return form;
}

export function attachWallet(page: Page, element_: HTMLFormElement): AttachedForm {
  return new AttachedForm(element_, page.m, async () => {
    const { next } = await page.api.walletVerify(await signedByWallet(page, address => page.api.walletChallenge(address, page.oauth)));
    page.go(next);
  });
}
