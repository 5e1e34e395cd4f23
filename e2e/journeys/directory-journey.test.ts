import { SYSTEM } from '@platform/sdk';
import type { Page } from 'playwright';
import { beforeAll, describe, expect, test } from 'vitest';
import { ConsoleVisit, MODE } from '../fixtures/browser/console-visit.ts';
import { linkFor } from '../fixtures/mail.ts';
import { enterAsFirstAdministrator } from '../fixtures/first-administrator.ts';
import { shoot } from '../fixtures/browser/shots.ts';

const BABS = 'babs@example.org';
const USER = 'urn:ietf:params:scim:schemas:core:2.0:User';
const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';

describe(`a directory provisions people, ${MODE}`, () => {
  const visit = ConsoleVisit.ofSuite();
  const { platform } = visit;
  let ada: Page;
  let id = '';

  beforeAll(() => {
    ada = visit.page;
  });

  /** Through the gateway, with the console's own session. */
  const scim = (method: string, path: string, data?: object) =>
    ada.evaluate(
      async ({ gateway, env, method, path, body }) => {
        const session = (await (await fetch(`${gateway}/auth/session`, { credentials: 'include' })).json()) as { csrf_token: string };
        const headers = { 'x-bff-csrf': session.csrf_token, 'content-type': 'application/scim+json', 'x-bff-target-env-id': env };
        const answer = await fetch(`${gateway}/proxy/auth/scim/v2${path}`, {
          method,
          headers,
          credentials: 'include',
          ...(body ? { body } : {}),
        });
        const text = await answer.text();
        return {
          status: answer.status,
          type: answer.headers.get('content-type'),
          json: (text ? JSON.parse(text) : {}) as Record<string, unknown>,
        };
      },
      { gateway: platform.ready.gateway, env: SYSTEM.envId, method, path, body: data ? JSON.stringify(data) : undefined },
    );
  const row = (text: string) => ada.getByRole('row').filter({ hasText: text });

  test('1 IDN-020 a person who was provisioned chooses a password by mail and signs in', async () => {
    await enterAsFirstAdministrator(ada, platform);
    const made = await scim('POST', '/Users', {
      schemas: [USER],
      userName: BABS,
      displayName: 'Barbara Jensen',
      name: { familyName: 'Jensen' },
      emails: [{ value: BABS, primary: true }],
    });
    expect([made.status, made.type]).toEqual([201, 'application/scim+json; charset=utf-8']);
    id = String(made.json['id']);
    expect((await scim('GET', `/Users?filter=${encodeURIComponent(`userName eq "${BABS}"`)}`)).json).toMatchObject({
      totalResults: 1,
      Resources: [{ id, name: { familyName: 'Jensen' } }],
    });

    const babs = await visit.browser.newPage();
    await babs.goto(await linkFor(platform.dataDir, BABS, 'auth'));
    await babs.getByLabel('New password').fill('a compiler writes itself 1952');
    await babs.getByRole('button', { name: 'Save password' }).click();
    await babs.waitForURL(url => url.pathname === '/sign-in');
    await babs.goto(`${platform.ready.auth}/sign-in?return_to=/account`);
    await babs.getByLabel('Email').fill(BABS);
    await babs.getByLabel('Password', { exact: true }).fill('a compiler writes itself 1952');
    await babs.getByRole('button', { name: 'Sign in', exact: true }).click();
    await babs.waitForURL(url => url.pathname === '/account');
    await babs.getByText(BABS).waitFor();
    // Whom the directory closes, has no session from now on.
    expect(
      (await scim('PATCH', `/Users/${id}`, { schemas: [PATCH], Operations: [{ op: 'replace', value: { active: false } }] })).json['active'],
    ).toBe(false);
    await babs.reload();
    await babs.waitForURL(url => url.pathname === '/sign-in');
    await babs.close();
  });

  test('2 CON-027 IDN-024 the console shows people, what identity recorded, and who acted', async () => {
    await ada.goto(`${platform.ready.console}/#/audit?env=${SYSTEM.envId}`);
    await ada
      .getByRole('button', { name: /^Name of/ })
      .first()
      .click();
    await row(`(${platform.firstStart.email})`).first().waitFor();
    await shoot(ada, 'audit-actor');
    await ada.goto(`${platform.ready.console}/#/auth/audit?env=${SYSTEM.envId}`);
    await row('auth.user.provisioned').waitFor();
    await row('auth.user.disabled').waitFor();
    await shoot(ada, 'identity-audit');
    await ada.goto(`${platform.ready.console}/#/auth/users?env=${SYSTEM.envId}`);
    await row(BABS).getByText('disabled').waitFor();
    await shoot(ada, 'identity-users');
    await ada.goto(`${platform.ready.console}/#/auth/sessions?env=${SYSTEM.envId}`);
    await row(platform.firstStart.email).first().waitFor();
    await shoot(ada, 'identity-sessions');
  });

  test('3 an account that an administrator deletes is gone from the page and from the directory', async () => {
    await ada.goto(`${platform.ready.console}/#/auth/users?env=${SYSTEM.envId}`);
    await row(BABS).getByRole('button', { name: 'Delete account' }).click();
    await shoot(ada, 'identity-delete');
    await ada.getByRole('dialog').getByRole('button', { name: 'Delete account' }).click();
    await row(BABS).waitFor({ state: 'detached' });
    expect((await scim('GET', `/Users/${id}`)).status).toBe(404);
  });
});
