import { SYSTEM } from '@platform/sdk';
import type { Page } from 'playwright';
import { beforeAll, describe, expect, test } from 'vitest';
import { ConsoleVisit, MODE } from '../fixtures/browser/console-visit.ts';
import { enterAsFirstAdministrator } from '../fixtures/first-administrator.ts';
import { shoot } from '../fixtures/browser/shots.ts';

describe(`messages and their pages, ${MODE}`, () => {
  const visit = ConsoleVisit.ofSuite();
  const { platform } = visit;
  let ada: Page;
  beforeAll(() => {
    ada = visit.page;
  });
  const open = (page: string) => ada.goto(`${platform.ready.console}/#/post/${page}?env=${SYSTEM.envId}`);
  const row = (text: string) => ada.getByRole('row').filter({ hasText: text });
  /** Shown as it is, then wide and light again. */
  const shot = async (name: string) => {
    await shoot(ada, name);
    await ada.setViewportSize({ width: 1440, height: 900 });
    await ada.emulateMedia({ colorScheme: 'light' });
  };

  test('1 F-50 whoever resets a password on a laptop finds the mail in the mailbox, as it looks and with its link', async () => {
    await enterAsFirstAdministrator(ada, platform);
    const asked = await visit.browser.newPage();
    await asked.goto(`${platform.ready.auth}/password-reset`);
    await asked.getByLabel('Email').fill(platform.firstStart.email);
    await asked.getByRole('button', { name: 'Send the link' }).click();
    await asked.getByText(/If this address belongs to an account/).waitFor();
    await asked.close();
    // The first start says where mail is found.
    const [, mailbox = ''] = /Mail is kept, not sent.*: (https:\S+)/.exec(platform.output) ?? [];
    await ada.goto(mailbox);
    await row('Reset your password').waitFor();
    await shot('post-mailbox');
    await row('Reset your password').getByRole('link').first().click();
    await ada.getByRole('heading', { name: 'Reset your password' }).first().waitFor();
    const mail = ada.frameLocator('iframe');
    const link = await mail.getByRole('link').first().getAttribute('href');
    expect(link).toContain('/password-reset/confirm#token=');
    await shot('post-mail');
    const followed = await visit.browser.newPage();
    await followed.goto(link as string);
    await followed.getByLabel('New password').waitFor();
    await followed.close();
  });

  test('the bell tells how much is unread, and what is read is read everywhere', async () => {
    const bell = ada.getByRole('button', { name: /^Messages, / });
    await expect.poll(() => bell.getAttribute('aria-label')).toMatch(/^Messages, \d+ unread$/);
    await bell.click();
    const dialog = ada.getByRole('dialog', { name: 'Messages' });
    await dialog.getByText('Reset your password').first().waitFor();
    await shot('post-bell');
    await dialog.getByRole('button', { name: 'Mark Reset your password read' }).first().click();
    await dialog.getByRole('button', { name: 'Mark all read' }).click();
    await expect.poll(() => bell.getAttribute('aria-label')).toBe('Messages, none unread');
    await dialog.getByLabel('Unread only').check();
    await dialog.getByText('Everything is read').waitFor();
    await ada.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
  });

  test('2 NTF-052 a message says what each channel did, and why', async () => {
    await open('messages');
    await row('Reset your password').first().waitFor();
    await shot('post-messages');
    await row('Reset your password').first().getByRole('link').first().click();
    await row('email').getByText('kept in the mailbox').waitFor();
    await shot('post-message');
  });

  test('3 NTF-052 a gateway is added by its form', async () => {
    await open('gateways');
    await ada.getByRole('button', { name: 'Add a gateway' }).first().click();
    const dialog = ada.getByRole('dialog');
    await dialog.getByLabel('Name').fill('Texts');
    await dialog.getByLabel('Channel').selectOption('sms');
    await shot('post-gateway-new');
    await dialog.getByRole('button', { name: 'Add a gateway' }).click();
    await row('Texts').waitFor();
    await shot('post-gateways');
  });

  test.each(['dead-letters', 'templates', 'suppressions', 'preferences', 'policy', 'work'])('4 NTF-052 the page %s opens', async page => {
    await open(page);
    await ada.getByRole('heading', { level: 1 }).first().waitFor();
    await ada.waitForLoadState('networkidle');
    expect(await ada.getByRole('alert').allInnerTexts()).toEqual([]);
    await shot(`post-${page}`);
  });

  test('5 a template is seen in both themes, from right to left where it is read so', async () => {
    await open('templates');
    const templates = ada.getByRole('row').filter({ hasText: 'auth.already_there' });
    await templates.filter({ hasText: 'لديك حساب بالفعل' }).first().getByRole('link').first().click();
    await expect.poll(() => ada.frameLocator('iframe').first().locator('html').getAttribute('dir')).toBe('rtl');
    await shot('post-template');
  });
});
