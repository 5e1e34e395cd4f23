import { filled } from '../messages.ts';
import type { Messages } from '../messages-en.ts';
import { ApiProblem } from './identity-api.ts';

type Values = Record<string, string>;

/** A form that checks, sends once at a time, says what went wrong, and never keeps a password. */
export class AttachedForm {
  readonly element: HTMLFormElement;
  readonly #m: Messages;
  readonly #send: (values: Values, decision: string) => Promise<void>;
  #busy = false;

  constructor(element: HTMLFormElement, m: Messages, send: (values: Values, decision: string) => Promise<void>) {
    this.element = element;
    this.#m = m;
    this.#send = send;
    element.addEventListener('submit', event => {
      event.preventDefault();
      const { submitter } = event;
      void this.submit(submitter instanceof HTMLButtonElement ? submitter : undefined).catch(() => undefined);
    });
    for (const button of element.querySelectorAll('button')) button.disabled = false;
  }

  /** What the button does; automation calls it too. Rejects with what went wrong after it has been shown. */
  async submit(button = this.element.querySelector<HTMLButtonElement>('[type=submit]') ?? undefined): Promise<void> {
    if (this.#busy) return;
    this.#clear();
    if (!this.#valid()) throw new ApiProblem(0, { code: 'invalid_input' }, '');
    const values: Values = {};
    for (const control of this.element.querySelectorAll<HTMLInputElement>('input[name]'))
      if (control.type !== 'checkbox') values[control.name] = control.value;
    return this.during(button, () => this.#send(values, button?.value ?? ''));
  }

  /** One piece of work at a time, of this form or of a button beside it. */
  async during(button: HTMLButtonElement | undefined, work: () => Promise<void>): Promise<void> {
    if (this.#busy) return;
    this.#clear();
    const label = button?.textContent ?? '';
    this.#busy = true;
    if (button) {
      button.setAttribute('aria-busy', 'true');
      button.textContent = this.#m.working;
    }
    try {
      await work();
    } catch (error) {
      this.show(error instanceof ApiProblem ? error : new ApiProblem(0, { code: 'unexpected' }, ''));
      throw error;
    } finally {
      for (const control of this.element.querySelectorAll<HTMLInputElement>('[data-password] input')) {
        control.value = '';
        control.dispatchEvent(new Event('input', { bubbles: true }));
      }
      this.#busy = false;
      if (button) {
        button.removeAttribute('aria-busy');
        button.textContent = label;
      }
    }
  }

  show(problem: ApiProblem): void {
    let placed: HTMLInputElement | undefined;
    for (const { pointer, message } of problem.errors) {
      const control = this.#control(pointer.replace(/^#?\//, ''));
      if (control) {
        this.#fault(control, message);
        placed ??= control;
      }
    }
    if (placed) return placed.focus();
    const alert = this.element.querySelector<HTMLElement>('[data-alert]');
    if (!alert) return;
    const lines = [textOf(problem, this.#m)];
    const unforeseen = !this.#m.problems[problem.code];
    if (unforeseen && problem.correlationId) lines.push(filled(this.#m.reference, { id: problem.correlationId }));
    alert.replaceChildren(
      ...lines.map((line, index) => {
        const paragraph = document.createElement('p');
        paragraph.textContent = line;
        if (index) paragraph.className = 'sub';
        return paragraph;
      }),
    );
    alert.hidden = false;
    alert.focus();
  }

  #valid(): boolean {
    const faulty = [...this.element.querySelectorAll<HTMLInputElement>('input[name]')].filter(control => {
      const fault = this.#faultOf(control);
      if (fault) this.#fault(control, fault);
      return fault !== undefined;
    });
    faulty[0]?.focus();
    return faulty.length === 0;
  }

  #faultOf(control: HTMLInputElement): string | undefined {
    const { value } = control;
    if (control.required && value.trim() === '') return this.#m.required;
    if (control.type === 'email' && value && !/^\S+@\S+$/.test(value)) return this.#m.bad_email;
    if (control.autocomplete === 'new-password' && value.length < 12) return filled(this.#m.meter_short, { n: value.length });
    if (control.autocomplete === 'new-password' && value.length > 128) return this.#m.meter_long;
    return undefined;
  }

  #control(name: string): HTMLInputElement | null {
    return this.element.querySelector<HTMLInputElement>(`input[name="${CSS.escape(name)}"]`);
  }

  #fault(control: HTMLInputElement, text: string): void {
    const place = this.element.querySelector<HTMLElement>(`#${CSS.escape(control.name)}-fault`);
    if (!place) return;
    control.setAttribute('aria-invalid', 'true');
    place.textContent = text;
    place.hidden = false;
  }

  #clear(): void {
    for (const control of this.element.querySelectorAll('[aria-invalid]')) control.removeAttribute('aria-invalid');
    for (const place of this.element.querySelectorAll<HTMLElement>('.fault, [data-alert]')) place.hidden = true;
  }
}

/** In the visitor's language where the catalog knows the code, else in the service's own words. */
export function textOf({ status, code, detail }: ApiProblem, m: Messages): string {
  const known = m.problems[code];
  if (known) return known;
  if (status === 429) return m.problems['rate_limited'] as string;
  if (status === 0 && !code) return m.unreachable;
  return detail ?? m.unexpected;
}
