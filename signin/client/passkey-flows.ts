import { filled } from '../messages.ts';
import type { Page } from './page.ts';

/** The pages exist without a route; there is no service behind them yet. */
export function attachPasskey(page: Page): void {
  page.say(filled(page.m.passkey_text, {}));
}
