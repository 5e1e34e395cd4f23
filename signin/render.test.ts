import { expect, test } from 'vitest';
import { assetsOf } from './assets.ts';
import { LANGUAGES, type Locale, localeOf, messagesOf } from './messages.ts';
import { renderStep } from './render.ts';
import { ROUTED, type Step, stepOf } from './step.ts';

const assets = { js: '/signin-assets/a.js', css: '/signin-assets/a.css' };
const context = {
  client_id: 'c',
  redirect_uri: 'https://app/cb',
  state: 's',
  code_challenge: 'cc',
  scope: 'openid',
  request_uri: 'urn:r',
  uid: 'u',
};
const render = (step: Step, query: Record<string, string> = {}, locale: Locale = 'en') =>
  renderStep(step, { locale, query, assets, displayName: 'Console' });

test.each<[string, Step]>([
  ['SGN-002', 'sign-in'],
  ['SGN-003', 'sign-up'],
  ['SGN-004', 'mfa'],
  ['SGN-005', 'password-reset'],
  ['SGN-006', 'verify-email'],
  ['SGN-007', 'consent'],
  ['SGN-008', 'device'],
  ['SGN-009', 'ciba'],
  ['SGN-010', 'wallet'],
])('%s the %s step has a document with its form', (_, step) => {
  const page = render(step);
  expect(page).toContain(`data-step="${step}"`);
  expect(page).toMatch(/<form method="post" novalidate data-form/);
  expect(page.match(/<h1/g)).toHaveLength(1);
});

test('SGN-015 SGN-032 SGN-033 SGN-034 each step has its own path', () => {
  expect(new Set(ROUTED.map(step => stepOf(`/${step}`))).size).toBe(ROUTED.length);
  expect(['/sign-in', '/consent', '/device', '/password-reset/confirm'].map(stepOf)).toEqual([
    'sign-in',
    'consent',
    'device',
    'password-reset/confirm',
  ]);
  expect(['/', '/nothing', '/sign-in/', '/__proto__'].map(stepOf)).toEqual(['not-found', 'not-found', 'not-found', 'not-found']);
});

test('SGN-017 SGN-028 links between steps carry the whole OAuth context', () => {
  const links = [...render('sign-in', { ...context, other: 'x' }).matchAll(/href="(\/[^"]*)"/g)]
    .map(([, href]) => new URL((href as string).replaceAll('&amp;', '&'), 'https://x'))
    .filter(({ pathname }) => !pathname.endsWith('.css'));
  expect(links.map(({ pathname }) => pathname)).toEqual(['/password-reset', '/sign-up']);
  for (const { searchParams } of links) expect(Object.fromEntries(searchParams)).toEqual(context);
  // So do those of every other step of an authorization; the own account is none, and what a provider sends back is its own.
  const shown = ROUTED.filter(step => step !== 'sso' && !step.startsWith('account')).concat('account-recovery', 'account-recovery/confirm');
  for (const step of shown)
    for (const [, href = ''] of render(step, context).matchAll(/href="(\/(?!signin-assets)[^"]*)"/g))
      expect([step, Object.fromEntries(new URL(href.replaceAll('&amp;', '&'), 'https://x').searchParams)]).toEqual([step, context]);
});

test('SGN-022 SGN-024 the single sign-on button and the recovery explainer are there', () => {
  expect(render('sign-in')).toContain('data-sso');
  for (const step of ['account-recovery', 'account-recovery/confirm', 'account-recovery/finish'] as const)
    expect(render(step)).not.toContain('<form');
});

test('where accounts are recovered, each of its pages has a form, and the way there stands on the page that resets the password', () => {
  const shown = (step: Step) => renderStep(step, { locale: 'en', query: context, assets, displayName: 'Console', recovery: true });
  for (const step of ['account-recovery', 'account-recovery/confirm', 'account-recovery/cancel', 'account-recovery/finish'] as const)
    expect([step, shown(step).match(/data-form/g)?.length]).toEqual([step, 1]);
  expect(shown('password-reset')).toContain('href="/account-recovery?client_id=c');
  expect(render('password-reset', context)).not.toContain('/account-recovery');
});

test('SGN-023 the passkey pages exist and have no path', () => {
  expect(render('passkey-enroll')).toContain('data-step="passkey-enroll"');
  expect(['/passkey-enroll', '/passkey-verify'].map(stepOf)).toEqual(['not-found', 'not-found']);
});

test('the account list is only on the page when a consent flow is', () => {
  expect(render('consent')).not.toContain('data-accounts');
  expect(render('consent', { consent_flow: 'fdx' })).toContain('data-accounts');
});

test('nothing is inline, so the content policy needs no exception', () => {
  for (const step of [...ROUTED, 'not-found' as const]) {
    for (const locale of Object.keys(LANGUAGES) as Locale[]) {
      const page = render(step, context, locale);
      expect(page).not.toMatch(/\sstyle=|<style|\son[a-z]+=|javascript:/i);
      expect(page.match(/<script/g)).toHaveLength(1);
      expect(page).toContain(`<html lang="${locale}" dir="${LANGUAGES[locale].dir}"`);
    }
  }
});

test('what comes from the address is escaped, and unknown words are not repeated', () => {
  const evil = '"><img src=x onerror=alert(1)>';
  const page = render('sign-in', { login_hint: evil, client_id: evil, notice: evil });
  expect(page).not.toContain('<img src=x');
  expect(page).toContain('&quot;&gt;&lt;img');
  const error = render('error', { error: evil, error_description: 'Call us at 555', correlation_id: 'auth-1' });
  expect(error).not.toContain('Call us');
  expect(error).not.toContain('onerror');
  expect(error).toContain('auth-1');
});

test('the submit button waits for the script, so a browser never posts a password by itself', () => {
  expect(render('sign-in')).toMatch(/<button type="submit"[^>]* disabled>/);
});

test('every language says everything', () => {
  const shape = (value: object): unknown =>
    Object.entries(value).map(([name, inner]) =>
      typeof inner === 'object'
        ? [name, shape(inner)]
        : [
            name,
            String(inner)
              .match(/\{\w+\}/g)
              ?.sort() ?? [],
          ],
    );
  for (const locale of Object.keys(LANGUAGES)) expect([locale, shape(messagesOf(locale))]).toEqual([locale, shape(messagesOf('en'))]);
  expect([localeOf('de-CH,de;q=0.9,en;q=0.8'), localeOf('fr,en;q=0.5,de;q=0.7'), localeOf(undefined), localeOf('fr')]).toEqual([
    'de',
    'de',
    'en',
    'en',
  ]);
  // What the application or the person asks for comes before what the browser does.
  expect([
    localeOf('de', 'fr ar-EG en'),
    localeOf('de', 'fr'),
    localeOf('ar;q=0, de;q=0.1', ''),
    localeOf('constructor', '__proto__'),
  ]).toEqual(['ar', 'de', 'de', 'en']);
});

test('SGN-028 another language is a link on the page itself, with the whole context and the step of the moment', () => {
  const page = render('mfa', { ...context, challenge_id: 'c-1', methods: 'totp,recovery_code', other: 'x' }, 'ar');
  const links = [...page.matchAll(/href="(\?[^"]*)" lang="(\w+)"/g)].map(([, href, lang]) => [
    lang,
    Object.fromEntries(new URLSearchParams((href as string).replaceAll('&amp;', '&'))),
  ]);
  expect(links).toEqual(
    ['en', 'de'].map(ui_locales => [ui_locales, { ...context, challenge_id: 'c-1', methods: 'totp,recovery_code', ui_locales }]),
  );
});

test('hashed names come from the manifest', () => {
  expect(assetsOf({ 'client/main.ts': { file: 'a-1.js' }, 'client/signin.css': { file: 'b-2.css' } })).toEqual({
    js: '/signin-assets/a-1.js',
    css: '/signin-assets/b-2.css',
  });
  expect(() => assetsOf({})).toThrow('build it');
});
