import { textOf } from '../attached-form.ts';
import { ApiProblem, type OwnAccount } from '../identity-api.ts';
import type { Page } from '../page.ts';

/** A recovery of the account that is under way, shown to the person who is signed in, with the way to end it. */
export function showRecovery(page: Page, { recovery }: OwnAccount): void {
  const [section, text, button] = [
    page.find('[data-recovery]'),
    page.find('[data-recovery-text]'),
    page.find<HTMLButtonElement>('[data-recovery-end]'),
  ];
  if (!section || !text || !button) return;
  section.hidden = recovery === null;
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      await page.api.endRecovery();
      text.className = 'notice';
      text.textContent = page.m.recovery_cancelled;
      button.hidden = true;
    } catch (error) {
      text.textContent = error instanceof ApiProblem ? textOf(error, page.m) : page.m.unexpected;
      button.disabled = false;
    }
    // The button that was pressed is gone, or could not help: the focus goes to what it did.
    text.focus();
  });
}
