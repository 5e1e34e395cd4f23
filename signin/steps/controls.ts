import { html, type Markup } from '../markup.ts';
import type { Messages } from '../messages-en.ts';

interface TextField {
  name: string;
  label: string;
  type?: string;
  autocomplete: string;
  value?: string | undefined;
  required?: boolean;
  /** Written from left to right in every language. */
  latin?: boolean;
  inputmode?: string;
  maxlength?: number;
  note?: string;
  focus?: boolean;
  /** Shown, and sent as it is. */
  fixed?: boolean;
}

export function textField({
  name,
  label,
  type = 'text',
  autocomplete,
  value,
  required = true,
  latin = true,
  inputmode,
  maxlength,
  note,
  focus,
  fixed,
}: TextField): Markup {
  return html`<div class="field"><label for="${name}">${label}${note && html` <span class="sub">(${note})</span>`}</label><input
    class="input" id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" value="${value}"${latin && html` dir="ltr"`}
    autocapitalize="none" spellcheck="false" aria-describedby="${name}-fault"${inputmode && html` inputmode="${inputmode}"`}${
      maxlength && html` maxlength="${maxlength}"`
    }${required && html` required`}${fixed && html` readonly`}${focus && html` autofocus`}><p
    class="fault" id="${name}-fault" hidden></p></div>`;
}

/** A password with its reveal button and caps-lock hint; a new one also says how long it is. */
export function passwordField(
  m: Messages,
  {
    fresh,
    focus,
    name = 'password',
    label = fresh ? m.new_password : m.password,
  }: { fresh: boolean; focus?: boolean; name?: string; label?: string },
): Markup {
  return html`<div class="field" data-password><label for="${name}">${label}</label><div class="reveal"><input class="input" id="${name}"
    name="${name}" type="password" dir="ltr" autocomplete="${fresh ? 'new-password' : 'current-password'}"
    aria-describedby="${name}-fault${fresh && ` ${name}-meter`} ${name}-caps" required${focus && html` autofocus`}><button type="button"
    class="reveal-button" data-reveal aria-pressed="false" aria-controls="${name}" aria-label="${m.show_password}"></button></div><p
    class="fault" id="${name}-fault" hidden></p>${
      fresh &&
      html`<p class="sub" id="${name}-meter" data-meter
    role="status">${m.meter_empty}</p>`
    }<p class="hint" id="${name}-caps" data-caps role="status" hidden>${m.caps_lock}</p></div>`;
}

/** Disabled until the script is there, so that no browser ever submits a password by itself. */
export function submitButton(label: string, value?: string, quiet = false): Markup {
  return html`<button type="submit" class="btn${!quiet && ' primary'}" name="decision" value="${value}" disabled>${label}</button>`;
}

export function alertSlot(): Markup {
  return html`<div class="alert" role="alert" tabindex="-1" data-alert hidden></div>`;
}

export function notice(text: string | undefined): Markup {
  return html`<p class="notice" role="status" data-notice${!text && html` hidden`}>${text}</p>`;
}

export function form(body: Markup, attributes: Markup = html``): Markup {
  return html`<form method="post" novalidate data-form ${attributes}>${alertSlot()}${body}</form>`;
}
