import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openAccount } from '../fixtures/account.ts';
import { openBrowser } from '../fixtures/browser/browser.ts';
import { linkFor } from '../fixtures/mail.ts';
import { Platform } from '../fixtures/platform.ts';
import { shoot } from '../fixtures/browser/shots.ts';

const split = process.env['PLATFORM_E2E_MODE'] === 'split';
const shots = process.env['PLATFORM_E2E_SHOTS'];
const PASSWORD = 'a long walk by the sea 7';
const GRACE = 'grace@example.org';

describe(`members come and go, ${split ? 'one process per service' : 'all in one process'}`, () => {
  const platform = new Platform({ split, pluginDirs: '' });
  let browser: Browser;
  let ada: Page;
  let grace: Page;
  let membersUrl = '';
  let link = '';

  beforeAll(async () => {
    await platform.start();
    await openAccount(platform.dataDir, GRACE, PASSWORD);
    browser = await openBrowser(platform);
    ada = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
    grace = await (await browser.newContext({ viewport: { width: 360, height: 780 }, colorScheme: 'dark' })).newPage();
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await platform[Symbol.asyncDispose]();
  }, 60_000);

  const shot = async (page: Page, name: string) => {
    if (!shots) return;
    mkdirSync(shots, { recursive: true });
    await page.screenshot({ path: join(shots, `members-${name}.png`), fullPage: true });
  };
  const signIn = async (page: Page, email: string, password: string) => {
    await page.getByLabel('Email').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  };
  const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text });
  const invite = async (email: string) => {
    await ada.getByRole('button', { name: 'Invite', exact: true }).click();
    await ada.getByRole('dialog').getByLabel('Email').fill(email);
    await ada.keyboard.press('Enter');
    await row(ada, email)
      .getByRole('button', { name: `Withdraw the invitation of ${email}` })
      .waitFor();
  };

  /** The link of the account's mail, which is written after the page has answered. */
  const mailed = (email: string): Promise<string> => linkFor(platform.dataDir, email, 'auth').catch(() => mailed(email));

  test('1 REG-089 an owner invites somebody by e-mail, and sees who is waiting', async () => {
    await ada.goto(platform.ready.console);
    await signIn(ada, platform.firstStart.email, platform.firstStart.password);
    await ada.getByLabel('New password').fill(PASSWORD);
    await ada.getByRole('button', { name: 'Save password' }).click();
    await ada.getByRole('link', { name: 'Create organization' }).first().click();
    await ada.getByLabel('Organization name').fill('Harbour');
    await ada.getByText('Available', { exact: true }).waitFor();
    await ada.getByRole('button', { name: 'Create organization' }).click();
    await ada.getByRole('heading', { name: 'Harbour', level: 1 }).waitFor();
    await ada.getByRole('main').getByRole('link', { name: 'Members' }).click();
    await row(ada, platform.firstStart.email).getByText('owner').waitFor();
    await ada.getByText('Nobody is waiting').waitFor();
    membersUrl = ada.url();
    await shot(ada, 'empty');
    await invite(GRACE);
    await shot(ada, 'invited');
    link = await linkFor(platform.dataDir, GRACE);
    expect(link.startsWith(`${platform.ready.console}/#/bootstrap?org=`)).toBe(true);
  });

  test('2 H-08 REG-066 the link shows; only the button joins, and the next click is authorized', async () => {
    await grace.goto(link);
    await signIn(grace, GRACE, PASSWORD);
    await grace.getByText(`You are signed in as ${GRACE}.`).waitFor();
    await shot(grace, 'invitation-360-dark');
    await ada.reload();
    await row(ada, GRACE)
      .getByRole('button', { name: `Send ${GRACE} again` })
      .waitFor();
    await grace.getByRole('button', { name: 'Accept invitation' }).click();
    await grace.getByRole('heading', { name: 'Harbour', level: 1 }).waitFor();
    // Nobody reloads: the owner's window hears of it.
    await row(ada, GRACE).getByText('admin').waitFor();
    await ada.getByText('Nobody is waiting').waitFor();
    await shot(ada, 'joined');
    await grace.goto(membersUrl);
    await row(grace, platform.firstStart.email).waitFor();
    expect(await row(grace, platform.firstStart.email).getByRole('button').count()).toBe(0);
    await shot(grace, 'list-360-dark');
  });

  test('F-51 somebody without an account is led through account, verification and acceptance in one way', async () => {
    const LIN = 'lin@example.org';
    await invite(LIN);
    const lin = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
    await lin.goto(await linkFor(platform.dataDir, LIN));
    await lin.getByRole('heading', { name: 'Join Harbour' }).waitFor();
    await lin.getByText(/^.+ invites you to join Harbour\./).waitFor();
    expect(await lin.getByLabel('Email').inputValue()).toBe(LIN);
    if (shots) await shoot(lin, 'invited-1-account');
    await lin.getByLabel('Your name').fill('Lin Chen');
    await lin.getByLabel('New password').fill(PASSWORD);
    await lin.getByRole('button', { name: 'Create an account' }).click();
    await lin.getByRole('heading', { name: 'Confirm your email address' }).waitFor();
    if (shots) await shoot(lin, 'invited-2-mail');
    await lin.goto(await mailed(LIN));
    await lin.getByText('and you are a member of Harbour').waitFor();
    if (shots) await shoot(lin, 'invited-3-confirm');
    await lin.getByRole('button', { name: 'Confirm the address' }).click();
    await lin.getByText('you are a member. Sign in to go on.').waitFor();
    if (shots) await shoot(lin, 'invited-4-sign-in');
    await signIn(lin, LIN, PASSWORD);
    // She lands in the console, and the organization is hers to open.
    await lin.getByRole('main').getByRole('link', { name: 'Harbour' }).first().waitFor();
    if (shots) await shoot(lin, 'invited-5-console');
    await row(ada, LIN).getByText('admin').waitFor();
    await lin.close();
  });

  test('3 REG-148 every refusal is told in words: accepted, another e-mail, withdrawn, unknown', async () => {
    const told = async (url: string, words: string, name: string) => {
      await grace.goto('about:blank');
      await grace.goto(url);
      await grace.getByRole('button', { name: 'Accept invitation' }).click();
      await grace.getByText(words).waitFor();
      await shot(grace, `refused-${name}`);
    };
    await told(link, 'The invitation was accepted already', 'accepted');
    await invite('linus@example.org');
    const other = await linkFor(platform.dataDir, 'linus@example.org');
    await told(other, 'The invitation is for another e-mail', 'email');
    await row(ada, 'linus@example.org').getByRole('button', { name: 'Send linus@example.org again' }).click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Send again' }).click();
    await ada.getByRole('dialog').waitFor({ state: 'hidden' });
    await told(other, 'The invitation was withdrawn', 'withdrawn');
    await expect.poll(() => linkFor(platform.dataDir, 'linus@example.org'), { timeout: 20_000 }).not.toBe(other);
    await told(`${link}x`, 'This link is not valid', 'unknown');
  });

  test('4 REG-088 a level is changed and a member removed, with effect on the next click; the last owner stays', async () => {
    await row(ada, GRACE)
      .getByRole('button', { name: `Change level of ${GRACE}` })
      .click();
    await ada.getByRole('dialog').getByLabel('Level').selectOption('viewer');
    await shot(ada, 'change');
    await ada.getByRole('dialog').getByRole('button', { name: 'Save level' }).click();
    await row(ada, GRACE).getByText('viewer').waitFor();
    await grace.goto('about:blank');
    await grace.goto(membersUrl);
    await row(grace, GRACE).getByText('viewer').waitFor();
    expect(await grace.getByRole('button', { name: 'Invite', exact: true }).count()).toBe(0);

    await row(ada, platform.firstStart.email)
      .getByRole('button', { name: `Remove ${platform.firstStart.email}` })
      .click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Remove member' }).click();
    await ada.getByText('Make somebody else an owner first.').waitFor();
    await shot(ada, 'last-owner');
    await ada.keyboard.press('Escape');

    await row(ada, GRACE)
      .getByRole('button', { name: `Remove ${GRACE}` })
      .click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Remove member' }).click();
    await row(ada, GRACE).waitFor({ state: 'hidden' });
    await grace.goto('about:blank');
    await grace.goto(membersUrl);
    await grace.getByText('You are not a member of any organization yet').waitFor();
    await shot(grace, 'removed-360-dark');
  });
});
