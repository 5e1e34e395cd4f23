import { filled } from '../../messages.ts';
import { incomplete } from './account-flows.ts';
import { AttachedForm } from '../attached-form.ts';
import type { Page } from '../page.ts';

type Attach = (page: Page, form: HTMLFormElement) => AttachedForm;

export const attachRecovery: Attach = (page, form) =>
  new AttachedForm(form, page.m, async ({ email = '' }) => {
    await page.api.requestRecovery(email.trim());
    const ask = page.find('[data-ask]');
    if (ask) ask.hidden = true;
    page.say(page.m.recovery_sent);
  });

export const attachRecoveryConfirm: Attach = (page, form) =>
  withToken(page, form, async token => {
    const { needs_approval, ready_at } = await page.api.confirmRecovery(token);
    const ready = new Date(ready_at);
    const time = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'long', timeStyle: 'short' }).format(ready);
    const waits = ready.getTime() > Date.now();
    form.hidden = true;
    page.say(filled(!needs_approval ? page.m.recovery_wait : waits ? page.m.recovery_wait_judged : page.m.recovery_judged, { time }));
  });

export const attachRecoveryCancel: Attach = (page, form) =>
  withToken(page, form, async token => {
    await page.api.cancelRecovery(token);
    form.hidden = true;
    page.say(page.m.recovery_cancelled);
  });

export const attachRecoveryFinish: Attach = (page, form) =>
  withToken(page, form, async (token, password) => {
    await page.api.finishRecovery({ token, password });
    page.goTo('sign-in', { notice: 'account_recovered' });
  });

/** Pages that a link of a mail leads to; without its token they say so at once. */
function withToken(page: Page, form: HTMLFormElement, send: (token: string, password: string) => Promise<void>): AttachedForm {
  const { token } = page;
  const attached = new AttachedForm(form, page.m, async ({ password = '' }) => {
    if (!token) throw incomplete(page);
    await send(token, password);
  });
  if (!token) attached.show(incomplete(page));
  return attached;
}
