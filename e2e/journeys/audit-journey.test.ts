import { SYSTEM } from '@platform/sdk';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright';
import { beforeAll, describe, expect, test } from 'vitest';
import { ConsoleVisit, MODE } from '../fixtures/browser/console-visit.ts';
import { inDatabaseOf } from '../fixtures/database.ts';
import { enterAsFirstAdministrator } from '../fixtures/first-administrator.ts';

const PLATFORM = fileURLToPath(new URL('../../scripts/platform.mjs', import.meta.url));

describe(`the audit trail as its keeper sees it, ${MODE}`, () => {
  const visit = ConsoleVisit.ofSuite();
  const { platform } = visit;
  let ada: Page;

  beforeAll(() => {
    ada = visit.page;
  });

  const verify = (...args: string[]) =>
    new Promise<{ code: number; output: string }>(resolve =>
      execFile(
        process.execPath,
        [PLATFORM, 'audit', 'verify', ...args],
        { env: { ...process.env, PLATFORM_DATA_DIR: platform.dataDir } },
        (error, stdout, stderr) => resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
      ),
    );
  const receipt = () => join(platform.dataDir, 'receipt');

  test('1 REG-004 what was recorded is proven, and a receipt of it is kept', async () => {
    await enterAsFirstAdministrator(ada, platform);
    await visit.createOrganization('Northwind');
    expect(await verify('--save', receipt())).toMatchObject({
      code: 0,
      output: expect.stringMatching(/1 environment, [1-9]\d* rows?, nothing was changed/),
    });
  });

  test('2 REG-004 the next key comes into force on a page, and what the last one signed stays proven', async () => {
    appendFileSync(join(platform.dataDir, 'keys', 'audit.key'), `\n${randomBytes(32).toString('base64')}\n`);
    await visit.goTo(`sys/audit-keys?env=${SYSTEM.envId}`);
    await ada.getByRole('button', { name: 'Bring into force' }).click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Bring into force' }).click();
    await ada.getByRole('cell', { name: 'retired' }).waitFor();
    expect(await ada.getByRole('button', { name: 'Bring into force' }).count()).toBe(0);
    await visit.shot('audit-keys');
    expect(await verify('--since', receipt())).toMatchObject({ code: 0, output: expect.stringContaining('after 1 other') });
  });

  test('3 REG-004 an earlier state of the trail, put back with its signatures, is found out', async () => {
    const { dataDir } = platform;
    await inDatabaseOf(dataDir, 'sys', async sql => {
      for (const table of ['audit', 'audit_heads', 'audit_anchors'])
        await sql.unsafe(`create table kept_${table} as select * from ${table}`);
    });
    await visit.createOrganization('Southwind');
    // Before it is ready it signs what is not signed, and takes note of it.
    await platform.stop();
    await platform.start();
    await inDatabaseOf(dataDir, 'sys', async sql => {
      for (const table of ['audit', 'audit_heads', 'audit_anchors'])
        await sql.unsafe(
          `alter table ${table} disable trigger user; delete from ${table}; insert into ${table} select *
            from kept_${table}; alter table ${table} enable trigger user`,
        );
    });
    expect(await verify()).toMatchObject({ code: 1, output: expect.stringContaining('[rolled_back]') });
  });
});
