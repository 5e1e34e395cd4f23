import { ar } from './messages-ar.ts';
import { de } from './messages-de.ts';
import { en, type Messages } from './messages-en.ts';

export type Locale = 'en' | 'de' | 'ar';

interface Language {
  readonly messages: Messages;
  readonly dir: 'ltr' | 'rtl';
  /** As its speakers call it. */
  readonly name: string;
}

export const LANGUAGES: Readonly<Record<Locale, Language>> = {
  en: { messages: en, dir: 'ltr', name: 'English' },
  de: { messages: de, dir: 'ltr', name: 'Deutsch' },
  ar: { messages: ar, dir: 'rtl', name: 'العربية' },
};

/** The language of a tag (BCP 47), where it is one of ours. */
export const spokenOf = (tag: string | null | undefined): Locale | undefined => {
  const language = (tag ?? '').toLowerCase().split('-')[0] as string;
  return Object.hasOwn(LANGUAGES, language) ? (language as Locale) : undefined;
};

export function messagesOf(locale: string): Messages {
  return LANGUAGES[spokenOf(locale) ?? 'en'].messages;
}

/** What the address asks for (`ui_locales`, most wanted first: OpenID Connect Core 3.1.2.1), else what the browser does. */
export function localeOf(header: string | undefined, uiLocales = ''): Locale {
  const asked = uiLocales.split(' ').find(spokenOf);
  if (asked) return spokenOf(asked) as Locale;
  const wanted = (header ?? '').split(',').map(part => {
    const [tag = '', ...params] = part.trim().split(';');
    const q = params.find(param => param.trim().toLowerCase().startsWith('q='));
    return { locale: spokenOf(tag.trim()), weight: q ? Number(q.trim().slice(2)) || 0 : 1 };
  });
  const [best] = wanted.filter(({ locale, weight }) => locale && weight > 0).sort((a, b) => b.weight - a.weight);
  return best?.locale ?? 'en';
}

export function filled(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ''));
}
