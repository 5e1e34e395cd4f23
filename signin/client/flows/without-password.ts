import type { Page } from '../page.ts';

/** On a page of an account that has no password: no form asks for one, and each that would says what to do instead. */
export function withoutPassword(page: Page, path: '/account' | '/account/mfa'): void {
  for (const field of document.querySelectorAll<HTMLElement>('form [data-password]')) {
    if (field.closest('[data-change-password]')) continue;
    const hint = document.createElement('p');
    hint.className = 'sub';
    const again = document.createElement('a');
    again.href = page.linkTo('sign-in', { return_to: path });
    again.textContent = page.m.sign_in_again;
    hint.append(page.m.no_password, ' ', again);
    field.replaceWith(hint);
  }
  page.find('[data-change-password]')?.remove();
}
