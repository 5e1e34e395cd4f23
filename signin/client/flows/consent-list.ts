import { filled } from '../../messages.ts';
import { textOf } from '../attached-form.ts';
import { ApiProblem, type OwnConsent } from '../identity-api.ts';
import { listRow } from '../list-row.ts';
import type { Page } from '../page.ts';

/** Applications that act for the person, each with a way to take it back. */
export async function showConsents(page: Page): Promise<void> {
  const { items } = await page.api.consents();
  const none = page.find('[data-applications-none]');
  if (none) none.hidden = items.length > 0;
  page.find('[data-applications]')?.replaceChildren(...items.map(consent => consentRow(page, consent, () => void withdraw(page, consent))));
  page.find('[data-applications-alert]')?.setAttribute('hidden', '');
}

async function withdraw(page: Page, { client, client_id }: OwnConsent): Promise<void> {
  const { api, m } = page;
  try {
    await api.withdrawConsent(client_id);
    await showConsents(page);
    tell(page, '[data-applications-notice]', filled(m.withdrawn, { name: client.name }));
  } catch (error) {
    tell(page, '[data-applications-alert]', error instanceof ApiProblem ? textOf(error, m) : m.unexpected);
  }
}

/** The button that was pressed is gone, so the focus goes to what it did. */
function tell(page: Page, selector: string, text: string): void {
  const place = page.find(selector);
  if (!place) return;
  place.textContent = text;
  place.hidden = false;
  place.focus();
}

function consentRow({ m }: Page, { client, scopes, granted_at }: OwnConsent, run: () => void): HTMLElement {
  const time = new Date(granted_at).toLocaleDateString(document.documentElement.lang);
  return listRow({
    title: client.name,
    lines: [scopes.map(({ scope, title }) => m.scopes[scope] ?? title).join(' · '), filled(m.application_since, { time })],
    action: { label: m.withdraw, spoken: filled(m.withdraw_from, { name: client.name }), run },
  });
}
