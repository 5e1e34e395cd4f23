import { as } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { LANGUAGES, type Locale } from '../../../signin/messages.ts';
import { MAIL_WORDS } from '../contract/mail/mail-words.ts';
import { Directory } from './fixtures/directory.ts';
import { NEXT, Recoverer } from './fixtures/recoverer.ts';
import { CHOSEN, World } from './fixtures/world.ts';

const APP = 'an-application';
let world: World;
let count = 0;
beforeAll(async () => {
  world = await World.start({ environment: { PLATFORM_AUTH_ACCOUNT_RECOVERY: 'wait' } });
  world.apps.set(APP, { auth_env: '00000000-0000-7000-8000-000000000002', auth_mode: 'open', auth_group: null, allow_signup: true });
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());

const speaking = (locale: string) => ({ 'accept-language': locale });
const address = () => `reader-${(count += 1)}@example.org`;
const newest = async (to: string) => (await world.mails(to)).at(-1);
const signIn = (email: string, locale: string) =>
  world.browser().post('/v1/sign-in', { email, password: CHOSEN, oauth: {} }, speaking(locale));

describe('the words of mail', () => {
  test('say everything in every language of the pages, with the same links and times', () => {
    const holes = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort();
    const shape = (locale: Locale) =>
      Object.fromEntries(Object.entries(MAIL_WORDS[locale]).map(([letter, { subject, text }]) => [letter, [holes(subject), holes(text)]]));
    expect(Object.keys(MAIL_WORDS).sort()).toEqual(Object.keys(LANGUAGES).sort());
    for (const locale of Object.keys(MAIL_WORDS) as Locale[]) {
      expect([locale, shape(locale)]).toEqual([locale, shape('en')]);
      for (const [letter, { subject, text }] of Object.entries(MAIL_WORDS[locale])) {
        expect([letter, subject.trim() === subject && subject.length > 3]).toEqual([letter, true]);
        // A link on a line of its own: no full stop, and no letter of another direction, sticks to it.
        for (const line of text.split('\n'))
          if (/\{(?:link|reset|cancel)\}/.test(line)) expect([letter, line]).toEqual([letter, expect.stringMatching(/^\{\w+\}$/)]);
      }
    }
    const [subjects, texts] = [
      (locale: Locale) => Object.values(MAIL_WORDS[locale]).map(({ subject }) => subject),
      (locale: Locale) => Object.values(MAIL_WORDS[locale]).map(({ text }) => text),
    ];
    for (const locale of ['de', 'ar'] as const) {
      const same = (list: (locale: Locale) => string[]) => list(locale).filter(word => list('en').includes(word));
      expect([same(subjects), same(texts)]).toEqual([[], []]);
    }
  });
});

describe('mail', () => {
  test('that is asked for at a page speaks the language of the page, and its links stay what they are', async () => {
    const email = address();
    await world.person(email);
    for (const [locale, word] of [
      ['de-CH,de;q=0.9', 'Setzen Sie Ihr Passwort zurück'],
      ['ar', 'أعد تعيين كلمة المرور'],
      ['fr', 'Reset your password'],
    ] as const) {
      await world.browser().post('/v1/password/reset-request', { email }, speaking(locale));
      expect(await newest(email)).toMatchObject({
        subject: word,
        body: expect.stringMatching(new RegExp(`^${world.issuer}/password-reset/confirm#token=[\\w-]{43}$`, 'm')),
      });
    }
    await world.sql`update users set email_verified = false where email = ${email}`;
    await world.browser().post('/v1/email/verify-request', { email }, speaking('de'));
    expect((await newest(email))?.subject).toBe('Bestätigen Sie Ihre E-Mail-Adresse');
  });

  test('to a new account speaks as the page on which it was opened; so does what is told later', async () => {
    const email = address();
    const open = (locale: string) =>
      world.browser().post('/v1/sign-up', { email, password: CHOSEN, oauth: { client_id: APP } }, speaking(locale));
    expect((await open('ar')).status).toBe(200);
    expect((await newest(email))?.subject).toBe('أكّد عنوان بريدك الإلكتروني');
    await world.browser().post('/v1/email/verify', { token: await world.token(email) });
    await open('de');
    expect((await newest(email))?.subject).toBe('Sie haben schon ein Konto');
    // Nobody is at a page of theirs when an administrator acts: the account's own language.
    const [{ user_id } = { user_id: '' }] = await world.sql<{ user_id: string }[]>`select user_id from users where email = ${email}`;
    await world.sql`insert into authenticators (user_id, sealed, confirmed_at) values (${user_id}, '{}', now())`;
    await world.host.by(as.user('auth:users:admin')).resetUserMfa({ params: { user_id } });
    expect((await newest(email))?.subject).toBe('أُزيل تطبيق المصادقة');
  });

  test('follows whoever signs in in another language, and says nothing else of a browser that says nothing', async () => {
    const email = address();
    const userId = await world.person(email);
    const locale = async () =>
      (await world.sql<{ locale: string | null }[]>`select locale from users where user_id = ${userId}`)[0]?.locale;
    expect(await locale()).toBe(null);
    await signIn(email, 'de');
    expect(await locale()).toBe('de');
    await world.browser().post('/v1/sign-in', { email, password: CHOSEN, oauth: {} });
    expect(await locale()).toBe('de');
    await world.browser().post('/v1/password/reset-request', { email }, speaking('ar'));
    await world.browser().post('/v1/password/reset', { token: await world.token(email), password: NEXT }, speaking('ar'));
    expect((await newest(email))?.subject).toBe('Ihr Passwort wurde geändert');
  });

  test('speaks as the directory says, the language before the habits of the place; unknown ones are English', async () => {
    const directory = await Directory.open(world, 'scim:read', 'scim:write');
    const email = address();
    const { id } = await directory.create({ userName: email, preferredLanguage: 'de-AT', locale: 'ar-EG' });
    expect((await newest(email))?.subject).toBe('Wählen Sie ein Passwort für Ihr Konto');
    await directory.patch(id, { op: 'replace', path: 'preferredLanguage', value: 'ar' });
    const locale = async () => (await world.sql<{ locale: string | null }[]>`select locale from users where user_id = ${id}`)[0]?.locale;
    expect(await locale()).toBe('ar');
    // The person's own choice stands until the directory says something new.
    await world.sql`update users set locale = 'de' where user_id = ${id}`;
    await directory.patch(id, { op: 'replace', path: 'displayName', value: 'Grace' });
    expect(await locale()).toBe('de');
    const other = address();
    await directory.create({ userName: other, locale: 'fr-FR' });
    expect((await newest(other))?.subject).toBe('Choose a password for your account');
  });

  test('of a recovery speaks as its page, and tells its time in words of that language', async () => {
    const person = await Recoverer.open(world);
    await person.ask(speaking('ar'));
    expect((await newest(person.email))?.subject).toBe('استرداد حسابك');
    await person.confirm((await person.token('confirm')) as string, speaking('de'));
    expect((await newest(person.email))?.body).toMatch(/Ab \d{1,2}\. \p{L}+ \d{4} um \d{2}:\d{2} UTC können Sie/u);
  });
});
