import { ar } from './mail-words-ar.ts';
import { de } from './mail-words-de.ts';
import { en, type MailWords } from './mail-words-en.ts';

type Locale = 'en' | 'de' | 'ar';

/** The same languages as the pages; the types and a test see that each says everything. */
export const MAIL_WORDS: Readonly<Record<Locale, MailWords>> = { en, de, ar };
