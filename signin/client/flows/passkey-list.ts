import { filled } from '../../messages.ts';
import { AttachedForm } from '../attached-form.ts';
import type { OwnPasskey } from '../identity-api.ts';
import { listRow } from '../list-row.ts';
import type { Page } from '../page.ts';
import { createPasskey } from './passkey-ceremony.ts';
import { asProblem } from './passkey-flows.ts';

/** The own passkeys, a way to add one with the password, and a way to call or give up each. */
export class PasskeyList {
  readonly #page: Page;
  readonly #form: AttachedForm;

  constructor(page: Page, element: HTMLFormElement) {
    this.#page = page;
    this.#form = new AttachedForm(element, page.m, ({ passkey_name: name = '', passkey_password: password = '' }) =>
      this.#add(name, password),
    );
  }

  async show(): Promise<void> {
    const { items } = await this.#page.api.passkeys();
    this.#page.find('[data-passkey-list]')?.replaceChildren(...items.map(passkey => this.#row(passkey)));
  }

  async #add(name: string, password: string): Promise<void> {
    const { api, m } = this.#page;
    const asked = await api.beginPasskey(password);
    const credential = await createPasskey(asked).catch(error => {
      throw asProblem(error);
    });
    await api.finishPasskey({ credential, name: name.trim() });
    const field = this.#form.element.querySelector<HTMLInputElement>('#passkey_name');
    if (field) field.value = '';
    await this.show();
    this.#tell(m.passkey_added);
  }

  #row(passkey: OwnPasskey): HTMLElement {
    const { m } = this.#page;
    const { name, suspended, last_used_at } = passkey;
    const used = last_used_at
      ? filled(m.passkey_used, { time: new Date(last_used_at).toLocaleString(document.documentElement.lang) })
      : m.passkey_unused;
    return listRow({
      title: this.#nameField(passkey),
      lines: [suspended ? m.passkey_suspended : used],
      action: {
        label: m.passkey_remove,
        spoken: filled(m.passkey_remove_named, { name }),
        run: () => void this.#remove(passkey).catch(error => this.#form.show(asProblem(error))),
      },
    });
  }

  /** The name is a field that keeps itself: what is written there counts when one leaves it. */
  #nameField({ passkey_id, name }: OwnPasskey): HTMLElement {
    const field = document.createElement('input');
    field.className = 'input name';
    field.value = name;
    field.maxLength = 60;
    field.setAttribute('aria-label', filled(this.#page.m.passkey_rename, { name }));
    field.addEventListener('change', () => {
      const wanted = field.value.trim();
      if (!wanted) {
        field.value = name;
        return;
      }
      void this.#page.api
        .renamePasskey(passkey_id, wanted)
        .then(() => this.show())
        .catch(error => this.#form.show(asProblem(error)));
    });
    return field;
  }

  async #remove({ passkey_id, name }: OwnPasskey): Promise<void> {
    await this.#page.api.removePasskey(passkey_id);
    await this.show();
    this.#tell(filled(this.#page.m.passkey_removed, { name }));
  }

  #tell(text: string): void {
    const place = this.#page.find('[data-passkeys-notice]');
    if (!place) return;
    place.textContent = text;
    place.hidden = false;
    place.focus();
  }
}
