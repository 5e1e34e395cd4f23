import { filled } from '../messages.ts';
import type { Messages } from '../messages-en.ts';

export function attachPasswordField(field: HTMLElement, m: Messages): void {
  const input = field.querySelector('input') as HTMLInputElement;
  const reveal = field.querySelector<HTMLButtonElement>('[data-reveal]');
  const caps = field.querySelector<HTMLElement>('[data-caps]');
  const meter = field.querySelector<HTMLElement>('[data-meter]');

  reveal?.addEventListener('click', () => {
    const shown = input.type === 'password';
    input.type = shown ? 'text' : 'password';
    reveal.setAttribute('aria-pressed', String(shown));
    reveal.setAttribute('aria-label', shown ? m.hide_password : m.show_password);
    input.focus();
  });
  for (const type of ['keydown', 'keyup'] as const) {
    input.addEventListener(type, event => {
      if (caps && typeof event.getModifierState === 'function') caps.hidden = !event.getModifierState('CapsLock');
    });
  }
  input.addEventListener('blur', () => {
    if (caps) caps.hidden = true;
  });
  input.addEventListener('input', () => {
    if (meter) meter.textContent = meterText(input.value.length, m);
  });
}

export function meterText(length: number, m: Messages): string {
  if (length === 0) return m.meter_empty;
  if (length < 12) return filled(m.meter_short, { n: length });
  return length > 128 ? m.meter_long : m.meter_good;
}
