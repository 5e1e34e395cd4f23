import { signIn, signUp } from './flows/account-flows.ts';
import type { AttachedForm } from './attached-form.ts';
import type { Page } from './page.ts';

declare global {
  interface Window {
    platformTestSignUp?: (input: { email: string; password: string; display_name?: string }) => Promise<void>;
    platformTestSignIn?: (input: { email: string; password: string; code?: string }) => Promise<void>;
    platformTestNavigate?: (step: string, query?: Record<string, string>) => Promise<void>;
  }
}

/** The same code as the buttons: on its own page an entry point fills the form and presses its button. */
export function exposeAutomation(page: Page, step: string, form: AttachedForm | undefined): void {
  const press = (values: Readonly<Record<string, string | undefined>>): Promise<void> => {
    for (const [name, value] of Object.entries(values)) {
      const control = form?.element.querySelector<HTMLInputElement>(`[name="${name}"]`);
      if (control) {
        control.value = value ?? '';
        control.dispatchEvent(new Event('input', { bubbles: true }));
      }
    }
    return (form as AttachedForm).submit();
  };
  window.platformTestSignIn = async input => (step === 'sign-in' && form && !input.code ? press(input) : signIn(page, input));
  window.platformTestSignUp = async input => (step === 'sign-up' && form ? press(input) : signUp(page, input));
  window.platformTestNavigate = async (to, query = {}) => page.goTo(to, query);
}
