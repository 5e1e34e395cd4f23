import { type Locale, localeOf } from '../../../../signin/messages.ts';
import type { Headers } from '../sign-in/request-cookies.ts';

/** The language of the page that sent a request: pages say theirs with every one. */
export function pageLanguage(headers: Headers): Locale | undefined {
  const said = headers['accept-language'];
  return said ? localeOf(said) : undefined;
}
