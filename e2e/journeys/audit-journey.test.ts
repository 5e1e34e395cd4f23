import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBrowser } from '../fixtures/browser.ts';
import { inDatabaseOf } from '../fixtures/database.ts';
import { enterAsFirstAdministrator } from '../fixtures/first-administrator.ts';
import { Platform } from '../fixtures/platform.ts';
import { shoot } from '../fixtures/shots.ts';

const split = process.env['PLATFORM_E2E_MODE'] === 'split';
const PLATFORM = fileURLToPath(new URL('../../scripts/platform.mjs', import.meta.url));

describe(`the audit trail as its keeper sees it, ${split ? 'one process per service' : 'all in one process'}`, () => {
  const platform = new Platform({ split, pluginDirs: '' });
  let browser: Browser;
  let ada: Page;

  beforeAll(async () => {
    await platform.start();
    browser = await openBrowser(platform);
    ada = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await platform[Symbol.asyncDispose]();
  }, 60_000);

  const verify = (...args: string[]) =>
    new Promise<{ code: number; output: string }>(resolve =>
      execFile(process.execPath, [PLATFORM, 'audit', 'verify', ...args], { env: { ...process.env, PLATFORM_DATA_DIR: platform.dataDir } }, (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
      ),
    );
  const createOrganization = async (name: string) => {
    await ada.goto(`${platform.ready.console}/#/`);
    await ada.getByRole('link', { name: 'Create organization' }).first().click();
    await ada.getByLabel('Organization name').fill(name);
    await ada.getByText('Available', { exact: true }).waitFor();
    await ada.getByRole('button', { name: 'Create organization' }).click();
    await ada.getByRole('heading', { name, level: 1 }).waitFor();
  };
  const receipt = () => join(platform.dataDir, 'receipt');

  test('1 REG-004 what was recorded is proven, and a receipt of it is kept', async () => {
    await enterAsFirstAdministrator(ada, platform);
    await createOrganization('Northwind');
    expect(await verify('--save', receipt())).toMatchObject({ code: 0, output: expect.stringMatching(/1 environment, [1-9]\d* rows?, nothing was changed/) });
  });

  test('2 REG-004 the next key comes into force on a page, and what the last one signed stays proven', async () => {
    appendFileSync(join(platform.dataDir, 'keys', 'audit.key'), `\n${randomBytes(32).toString('base64')}\n`);
    await ada.goto(`${platform.ready.console}/#/sys/audit-keys`);
    await ada.getByRole('button', { name: 'Bring into force' }).click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Bring into force' }).click();
    await ada.getByRole('cell', { name: 'retired' }).waitFor();
    expect(await ada.getByRole('button', { name: 'Bring into force' }).count()).toBe(0);
    await shoot(ada, 'audit-keys');
    expect(await verify('--since', receipt())).toMatchObject({ code: 0, output: expect.stringContaining('after 1 other') });
  });

  test('3 REG-004 an earlier state of the trail, put back with its signatures, is found out', async () => {
    const { dataDir } = platform;
    await inDatabaseOf(dataDir, 'sys', async sql => {
      for (const table of ['audit', 'audit_heads', 'audit_anchors']) await sql.unsafe(`create table kept_${table} as select * from ${table}`);
    });
    await createOrganization('Southwind');
    // Before it is ready it signs what is not signed, and takes note of it.
    await platform.stop();
    await platform.start();
    await inDatabaseOf(dataDir, 'sys', async sql => {
      for (const table of ['audit', 'audit_heads', 'audit_anchors'])
        await sql.unsafe(`alter table ${table} disable trigger user; delete from ${table}; insert into ${table} select * from kept_${table}; alter table ${table} enable trigger user`);
    });
    expect(await verify()).toMatchObject({ code: 1, output: expect.stringContaining('[rolled_back]') });
  });
});
