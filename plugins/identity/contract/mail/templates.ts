import type { TemplateDecl } from '@platform/sdk/contract';
import { MAIL_WORDS } from './mail-words.ts';
import type { Letter } from './mail-words-en.ts';

const HOST = 'https://auth.example.org';
const sample = {
  link: `${HOST}/verify-email#token=abc`,
  reset: `${HOST}/password-reset`,
  cancel: `${HOST}/account-recovery/cancel#token=abc`,
  time: '31 January 2027 at 12:00 UTC',
  name: 'Customer support',
  device: 'Firefox · Windows',
};

/** The letters as templates, which an environment may replace: `auth.{letter}`. */
export const templates: Readonly<Record<string, TemplateDecl>> = Object.fromEntries(
  (Object.keys(MAIL_WORDS.en) as Letter[]).map(letter => {
    const words = Object.entries(MAIL_WORDS).map(([locale, all]) => [
      locale,
      { subject: all[letter].subject, body: `${all[letter].text.replaceAll(/\{(\w+)\}/g, '{{$1}}')}\n` },
    ]);
    return [letter, { title: MAIL_WORDS.en[letter].subject, sample, words: Object.fromEntries(words) }];
  }),
);
