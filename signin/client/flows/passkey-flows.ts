import type { AttachedForm } from '../attached-form.ts';
import { ApiProblem } from '../identity-api.ts';
import type { Page } from '../page.ts';
import { askPasskey } from './passkey-ceremony.ts';

/** Passkeys on the sign-in page: what the browser offers in the e-mail field, and a button. Only one of them can wait at a time. */
export function attachPasskeys(page: Page, form: AttachedForm): void {
  const button = page.find<HTMLButtonElement>('[data-passkey]');
  if (!button) return;
  if (typeof PublicKeyCredential === 'undefined') return void button.remove();
  let waiting = new AbortController();
  const signIn = async (conditional: boolean) => {
    waiting.abort();
    waiting = new AbortController();
    const { signal } = waiting;
    const credential = await askPasskey(await page.api.passkeyChallenge(), signal, conditional);
    page.go((await page.api.passkeySignIn({ credential, oauth: page.oauth })).next);
  };
  const offer = async () => {
    if (!(await PublicKeyCredential.isConditionalMediationAvailable?.())) return;
    await signIn(true).catch(error => {
      // Nobody asked for anything yet, so only the service's own refusal is shown.
      if (error instanceof ApiProblem && error.status === 401) form.show(error);
    });
  };
  button.disabled = false;
  button.addEventListener('click', () => {
    void signIn(false).catch(error => {
      form.show(asProblem(error));
      void offer();
    });
  });
  void offer();
}

/** Browsers do not tell why: whoever declined and whoever has no passkey look alike (WebAuthn 14.5). */
export function asProblem(error: unknown): ApiProblem {
  return error instanceof ApiProblem ? error : new ApiProblem(0, { code: 'passkey_cancelled' }, '');
}
